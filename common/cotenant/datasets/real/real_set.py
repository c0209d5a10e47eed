"""What a real set declares. A new one is one file in this folder and one name in its list."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cotenant.datasets.archive import Archive
from cotenant.datasets.unpacking import Place

ALL, VALIDATION = "all", "validation"

LayOut = Callable[[Mapping[str, Path], Path], None]
"""(path of each archive by its name, the set's new folder) -> the files stand there. May raise DamagedArchiveError."""


@dataclass(frozen=True, slots=True)
class Half:
    """All of a set, or its validation half.

    `paths` are the files and folders that make it complete, `unpacked_bytes` is about what laying it out writes.
    `links` leads readers of the training half to what stands in its place: name -> target beside it.
    `count` tells the items of each split in a complete folder, before the links are there, and raises
    DamagedArchiveError where they make no sense.
    """

    archives: tuple[Archive, ...]
    unpacked_bytes: int
    paths: tuple[str, ...]
    lay_out: LayOut
    count: Callable[[Path], dict[str, int]]
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def archive_bytes(self) -> int:
        """What all its archives have together."""
        return sum(archive.size_bytes for archive in self.archives)


@dataclass(frozen=True, slots=True)
class RealSet:
    """A real set. `version` grows with every change of what is laid out; `name` and `folder` are its fake one's.

    `gated` is the page where a person asks for the archives: then none is ever downloaded.
    """

    name: str
    folder: str
    about: str
    version: int
    halves: Mapping[str, Half]
    gated: str | None = None

    def half(self, wanted: str) -> str:
        """Return the half that serves who wants this one: a set that has no smaller half is taken whole."""
        return wanted if wanted in self.halves else ALL


def matching(rules: Mapping[str, str]) -> Place:
    """Return the place of members by patterns: the first that matches the whole name gives it, in `\\1` terms."""
    compiled = [(re.compile(pattern), target) for pattern, target in rules.items()]

    def place(name: str) -> str | None:
        for pattern, target in compiled:
            if found := pattern.fullmatch(name.removeprefix("./")):
                return found.expand(target)
        return None

    return place


def count_files(folder: Path, suffix: str) -> int:
    """Return how many files below `folder` end in `suffix`, whatever its case."""
    return sum(1 for path in folder.rglob("*") if path.suffix.lower() == suffix and path.is_file())


def count_lines(path: Path) -> int:
    """Return how many lines end in a file."""
    with path.open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))
