"""Declarations of a data set: the files that are made, the archives that are published, and the files out of these.

A folder with a manifest holds a complete set: the manifest is written last.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from cotenant.datasets.disk import write_file
from cotenant.decoding import decoded

FAKE, REAL = "fake", "real"
SIZES = ("small", "full")
"""The sizes of fake sets, in the order in which a later one satisfies an earlier one."""
ALL, VALIDATION = "all", "validation"
RAW = ".raw"
FILE_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class File:
    """One file of a fake set: its path below the set's folder, `/` between the names.

    `items` is its part of its split's count (a file of labels adds none); `arguments` is whatever
    the set's `content` needs beside the path.
    """

    path: str
    split: str
    items: int
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """One size of a fake set: the bytes it is expected to take, and its files."""

    estimated_bytes: int
    files: Callable[[], Iterable[File]]


@dataclass(frozen=True, slots=True)
class Archive:
    """One file that a publisher hands out.

    `digest` is an md5 or a sha256 in hexadecimal digits that `recorded_by` published; it is None if none was recorded.
    """

    name: str
    urls: tuple[str, ...]
    size_bytes: int
    digest: str | None
    recorded_by: str = ""

    @property
    def exact(self) -> bool:
        """True if `size_bytes` is exact: it was recorded beside each sha256, and is approximate for other files."""
        return self.digest is not None and len(self.digest) == 64


def published(dataset: str) -> tuple[Archive, ...]:
    """Return the archives of a set: all that is known of them stands in archives.csv."""
    with Path(__file__).with_name("archives.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["set"] == dataset]
    return tuple(
        Archive(row["name"], tuple(row["urls"].split()), int(row["bytes"]), row["digest"] or None, row["recorded_by"])
        for row in rows
    )


@dataclass(frozen=True, slots=True)
class Half:
    """All of a real set, or its validation half.

    `paths` are the files and folders that make it complete, `unpacked_bytes` is about their size. `links`, name ->
    target beside it, lead readers of training files to the validation files.
    """

    archives: tuple[Archive, ...]
    unpacked_bytes: int
    paths: tuple[str, ...]
    links: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set, whose fake and real form have the same place and layout.

    `content` yields a fake file's bytes, piece by piece; it runs in worker processes, so it must pickle.

    `rules` say where the members of a real set's archives go: a pattern of a member's whole name -> its path below the
    set's folder. Out of the members below RAW, `prepare` makes the set's own files. `check` returns the items of each
    split in the folder, before the links are there. Both raise DamagedArchiveError if the files make no sense.
    `gated` is the page on which a person asks for the archives: such archives are never downloaded.

    `version` grows with every change of the bytes made or laid out.
    """

    name: str
    folder: str
    about: str
    sizes: Mapping[str, Recipe]
    content: Callable[[File], Iterable[bytes]]
    halves: Mapping[str, Half]
    rules: Mapping[str, str]
    check: Callable[[Path], dict[str, int]]
    prepare: Callable[[Path], None] | None = None
    gated: str | None = None
    version: int = 1

    def place(self, half: Half, member: str) -> str | None:
        """Return the path of an archive's member below the set's folder, None if `half` does not need it."""
        for pattern, target in self.rules.items():
            match = re.fullmatch(pattern, member.removeprefix("./"))
            if match and (path := match.expand(target)).startswith((RAW, *half.paths)):
                return path
        return None


@dataclass(frozen=True, slots=True)
class Received:
    """A file from which a real set was made: its origin, and the checksum it was compared with, if any."""

    file: str
    source: str
    bytes: int
    sha256: str
    verified_by: str | None


@dataclass(frozen=True, slots=True)
class FolderManifest:
    """Contents of a set's folder: `files` and `bytes` without the manifest itself, `splits` in items.

    `kind` is `fake` or `real`; `half` is `all`, or `validation` for the smaller half of a real set. `sources` are the
    files from which a real set was made: later runs compare files without a recorded digest with them.
    `taken_from` is the folder of an unpacked set, which was not compared.
    """

    name: str
    size: str
    kind: str
    version: int
    splits: Mapping[str, int]
    files: int = 0
    bytes: int = 0
    seed: int = 0
    half: str = ALL
    sources: tuple[Received, ...] = ()
    taken_from: str | None = None


_MANIFEST = msgspec.json.Decoder(FolderManifest)


def read_manifest(folder: Path) -> FolderManifest | None:
    """Return the manifest of the set in `folder`; None if there is none, or the folder is a link."""
    try:
        return None if folder.is_symlink() else decoded(_MANIFEST, (folder / FILE_NAME).read_bytes())
    except (OSError, msgspec.DecodeError):
        return None


def write_manifest(folder: Path, manifest: FolderManifest) -> None:
    """Write the manifest into `folder`, durably and in one step."""
    write_file(folder / FILE_NAME, [msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"])


def seeded(*numbers: int) -> np.random.Generator:
    """Return the generator for these numbers, so that it does not matter which worker draws when."""
    return np.random.default_rng([0, *numbers])


def count_pictures(splits: str, folder: Path) -> dict[str, int]:
    """Return the number of JPEG files below each of the folders in `folder` whose paths fit the pattern `splits`."""
    return {
        split.name: sum(path.suffix.lower() in (".jpg", ".jpeg") for path in split.rglob("*"))
        for split in folder.glob(splits)
        if split.is_dir()
    }


def count_lines(path: Path) -> int:
    """Return the number of line ends in a file."""
    with path.open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))
