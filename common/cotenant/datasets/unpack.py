"""What is taken out of archives: files of known names, into known places; nothing leads elsewhere.

No permission, owner, link or device of an archive reaches the disk: only the bytes of regular files do.
"""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, cast

from cotenant.datasets.progress import shown

# Data that is packed does not grow beyond this: what would fill a disk on purpose does.
MOST_GROWTH = 3
_PIECE_BYTES = 1 << 18


class DamagedArchiveError(Exception):
    """An archive that is not whole, or holds what no data set does; its words follow its name."""


@dataclass(frozen=True)
class Member:
    """A regular file in an archive, or something else; `open` is to be called before the next member is asked for."""

    name: str
    is_file: bool
    open: Callable[[], IO[bytes]]


Place = Callable[[str], str | None]
"""The name of a member -> where it goes below the set's folder, None for what is not needed."""


def unpack(archives: Iterable[Path], folder: Path, place: Place, expected_bytes: int, title: str) -> None:
    """Write the members that `place` wants below `folder`; raises DamagedArchiveError, and OSError from the disk.

    `expected_bytes` is about what comes out in all; three times as much is refused.
    """
    written = 0
    with _explained(), shown(f"unpacking {title}", expected_bytes, in_bytes=True) as reach:
        for archive in archives:
            for member in members_of(archive):
                _check_name(member.name)
                if (path := place(member.name)) is None:
                    continue
                for size in _write(member, folder / path):
                    written += size
                    if written > MOST_GROWTH * expected_bytes:
                        raise DamagedArchiveError(f"is refused: far more than {expected_bytes:,} bytes come out of it")
                    reach(written)


def _check_name(name: str) -> None:
    """Raise DamagedArchiveError for a name that leads out of the archive: then nothing in it is trusted."""
    if not name or name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
        raise DamagedArchiveError(f"is refused: {name!r} in it leads out of its folder")


def _write(member: Member, path: Path) -> Iterator[int]:
    """Write a member as a new file, and yield the bytes of each piece."""
    if not member.is_file:
        raise DamagedArchiveError(f"is refused: {member.name} in it is a link or a device, not a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        raise DamagedArchiveError(f"is refused: it holds {member.name} twice")
    with member.open() as packed, path.open("xb") as file:
        while piece := packed.read(_PIECE_BYTES):
            yield file.write(piece)


def members_of(archive: Path) -> Iterator[Member]:
    """Yield the members of a zip or tar archive as they lie in it, or the one file in a gzip file; no folders."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            yield from _of_zip(packed)
    elif archive.suffix == ".gz" and not archive.name.endswith(".tar.gz"):
        yield Member(archive.stem, True, partial(_decompressed, archive))
    else:
        with _decompressed(archive) as stream:
            yield from _of_tar(stream)
            # The readers of `tarfile` never come to the checksum of the compression, which lies behind all.
            while stream.read(_PIECE_BYTES):
                pass


def _decompressed(archive: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(archive)) if archive.suffix in (".gz", ".tgz") else archive.open("rb")


def _of_tar(stream: IO[bytes]) -> Iterator[Member]:
    """Yield the members of a tar archive; one inside it, as each of ImageNet's classes is, is read through."""
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for entry in tar:
            if entry.isreg() and entry.name.endswith(".tar"):
                with _extracted(tar, entry) as inner:
                    yield from _of_tar(inner)
            elif not entry.isdir():
                yield Member(entry.name, entry.isreg(), partial(_extracted, tar, entry))


def _extracted(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(entry)
    assert file is not None, "only regular files are opened"
    return file


def _of_zip(packed: zipfile.ZipFile) -> Iterator[Member]:
    for entry in packed.infolist():
        # Zeros where the archive was made on a system that knows no such types.
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if not entry.filename.endswith("/"):
            yield Member(entry.filename, kind in (0, stat.S_IFREG), partial(packed.open, entry))


@contextmanager
def _explained() -> Iterator[None]:
    """Turn what the readers of archives say into DamagedArchiveError; what our own disk says goes on as OSError."""
    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise DamagedArchiveError(f"is no whole archive: {error}") from error
    except (RuntimeError, NotImplementedError) as error:
        raise DamagedArchiveError(f"cannot be unpacked: {error}") from error
    except OSError as error:
        # gzip speaks of damage in errors without a number.
        if error.errno is not None:
            raise
        raise DamagedArchiveError(f"is no whole archive: {error}") from error
