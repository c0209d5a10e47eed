"""What a data set declares: the files that are made, the archives that are published, and what comes out of these."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FAKE, REAL = "fake", "real"
SIZES = ("small", "full")
"""The sizes of fake sets, in the order in which a later one satisfies an earlier one."""
ALL, VALIDATION = "all", "validation"
RAW = ".raw"
TFDS = "tensorflow-datasets 4.9.10"


@dataclass(frozen=True, slots=True)
class File:
    """One file of a fake set: its path below the set's folder, `/` between the names.

    `items` is what it adds to its split's count (a file of labels adds none); `arguments` is whatever
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

    `size_bytes` is binding where `exact`, else what the file is known to have about. `digest` is an md5 or a sha256 in
    hexadecimal digits that `recorded_by` published; it is None, and never made up, where nobody recorded one.
    """

    name: str
    urls: tuple[str, ...]
    size_bytes: int
    digest: str | None
    recorded_by: str = TFDS
    exact: bool = True

    @property
    def algorithm(self) -> str:
        """Which digest was recorded."""
        return "md5" if self.digest is not None and len(self.digest) == 32 else "sha256"

    @property
    def most_bytes(self) -> int:
        """The bytes beyond which what is sent cannot be this file."""
        return self.size_bytes if self.exact else 2 * self.size_bytes


def published(name: str, size_bytes: int, sha256: str, *bases: str) -> Archive:
    """Return an archive whose size and sha256 tensorflow-datasets records; `bases` are the URLs of its folders."""
    return Archive(name, tuple(base + name for base in bases), size_bytes, sha256)


@dataclass(frozen=True, slots=True)
class Half:
    """All of a real set, or its validation half.

    `paths` are the files and folders that make it complete, `unpacked_bytes` is about what they take. `links` lead
    readers of the training half to what stands in its place: name -> target beside it.
    """

    archives: tuple[Archive, ...]
    unpacked_bytes: int
    paths: tuple[str, ...]
    links: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set, fake and real, which stand at the same place in the same layout.

    `content` is (file, seed) -> the fake file's bytes, piece by piece; it runs in worker processes, so it must pickle.

    `rules` say where what a real set's archives hold goes: a pattern of a member's whole name -> its path below the
    set's folder. Out of what goes below RAW, `prepare` makes the set's own files. `check` returns the items of each
    split in the folder, before the links are there. Both raise DamagedArchiveError where the files make no sense.
    `gated` is the page where a person asks for the archives: then none is ever downloaded.

    The versions grow with every change of the bytes made or laid out.
    """

    name: str
    folder: str
    about: str
    sizes: Mapping[str, Recipe]
    content: Callable[[File, int], Iterable[bytes]]
    halves: Mapping[str, Half]
    rules: Mapping[str, str]
    check: Callable[[Path], dict[str, int]]
    prepare: Callable[[Path], None] | None = None
    gated: str | None = None
    fake_version: int = 1
    real_version: int = 1

    def place(self, half: Half, member: str) -> str | None:
        """Return where a member of an archive goes below the set's folder, None where `half` does not need it."""
        for pattern, target in self.rules.items():
            match = re.fullmatch(pattern, member.removeprefix("./"))
            if match and (path := match.expand(target)).startswith((RAW, *half.paths)):
                return path
        return None


def count_files(folder: Path, suffix: str) -> int:
    """Return how many files below `folder` end in `suffix`, whatever its case."""
    return sum(1 for path in folder.rglob("*") if path.suffix.lower() == suffix and path.is_file())


def count_lines(path: Path) -> int:
    """Return how many lines end in a file."""
    with path.open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))
