"""What publishers hand out: files with their places, sizes and checksums, and how one is told from another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cotenant.datasets.progress import shown_bytes

_PIECE_BYTES = 1 << 20
FIRST_RECEIVED = "the sha256 of what was first received"


class WrongBytesError(Exception):
    """A file is not the one it should be; its words go on after "it is not the file:"."""


@dataclass(frozen=True, slots=True)
class Checksum:
    """A digest of the whole file, and who recorded it: the publisher, or a library that many people read."""

    algorithm: Literal["md5", "sha256"]
    digest: str
    recorded_by: str

    def __str__(self) -> str:
        return f"the {self.algorithm} recorded by {self.recorded_by}"


@dataclass(frozen=True, slots=True)
class Archive:
    """One file that a publisher hands out.

    `size_bytes` is binding where `exact`, else what the file is known to have about. No checksum is ever made up:
    where nobody recorded one, there is None.
    """

    name: str
    urls: tuple[str, ...]
    size_bytes: int
    exact: bool
    checksum: Checksum | None

    @property
    def most_bytes(self) -> int:
        """The bytes beyond which what is sent cannot be this file."""
        return self.size_bytes if self.exact else 2 * self.size_bytes


@dataclass(frozen=True, slots=True)
class Received:
    """A file that was used for a set: where it came from, and what its bytes were compared with, None for nothing."""

    file: str
    source: str
    bytes: int
    sha256: str
    verified_by: str | None


def verified(archive: Archive, path: Path, source: str, first_received: str | None) -> Received:
    """Compare the file at `path` with what is known of `archive`.

    `first_received` is the sha256 of an earlier run, which counts where nobody recorded one. Raises WrongBytesError.
    """
    size_bytes = path.stat().st_size
    if archive.exact and size_bytes != archive.size_bytes:
        raise WrongBytesError(f"it has {size_bytes:,} bytes, and {archive.name} has {archive.size_bytes:,}")
    wanted = archive.checksum
    digests = _digests(path, {"sha256", wanted.algorithm if wanted else "sha256"})
    sha256 = digests["sha256"]
    if wanted is not None:
        if digests[wanted.algorithm] != wanted.digest:
            got = digests[wanted.algorithm]
            raise WrongBytesError(f"its {wanted.algorithm} is {got}, and {wanted} is {wanted.digest}")
        return Received(archive.name, source, size_bytes, sha256, str(wanted))
    if first_received is not None and sha256 != first_received:
        raise WrongBytesError(f"its sha256 is {sha256}, and {FIRST_RECEIVED} is {first_received}")
    return Received(archive.name, source, size_bytes, sha256, FIRST_RECEIVED if first_received else None)


def _digests(path: Path, algorithms: Iterable[str]) -> dict[str, str]:
    """Return the file's digest by each algorithm, as hexadecimal digits."""
    hashes = {name: hashlib.new(name, usedforsecurity=False) for name in algorithms}
    done = 0
    with path.open("rb") as file, shown_bytes(f"checking {path.name}", path.stat().st_size) as read:
        while piece := file.read(_PIECE_BYTES):
            for one in hashes.values():
                one.update(piece)
            done += len(piece)
            read(done)
    return {name: one.hexdigest() for name, one in hashes.items()}
