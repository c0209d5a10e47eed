"""What is taken out of archives: files of known names, into known places; nothing leads elsewhere.

No permission, owner, link or device of an archive reaches the disk: only the bytes of regular files do.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
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

from cotenant.datasets.progress import shown_bytes

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


@contextmanager
def explained_damage() -> Iterator[None]:
    """Turn what the readers of archives say into DamagedArchiveError; what our own disk says goes on as OSError."""
    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DamagedArchiveError(f"is no whole archive: {error}") from error
    except (RuntimeError, NotImplementedError) as error:
        raise DamagedArchiveError(f"cannot be unpacked: {error}") from error
    except OSError as error:
        # bz2 and gzip speak of damage in errors without a number.
        if error.errno is not None:
            raise
        raise DamagedArchiveError(f"is no whole archive: {error}") from error


def unpack(archive: Path, folder: Path, place: Place, expected_bytes: int) -> None:
    """Write the members that `place` wants below `folder`; raises DamagedArchiveError, and OSError from the disk.

    `expected_bytes` is about what comes out; three times as much is refused.
    """
    with explained_damage():
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as packed:
                write(_of_zip(packed), folder, place, expected_bytes, archive.name)
        else:
            with opened_tar(archive) as tar:
                write(of_tar(tar), folder, place, expected_bytes, archive.name)


@contextmanager
def opened_tar(archive: Path) -> Iterator[tarfile.TarFile]:
    """Yield a tar file to be read once from its beginning; at the end the checksum of its compression is compared.

    The readers of `tarfile` itself compare none, and none looks behind the last member.
    """
    with _decompressed(archive) as stream:
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            yield tar
        while stream.read(_PIECE_BYTES):
            pass


def _decompressed(archive: Path) -> BinaryIO:
    if archive.suffix in (".gz", ".tgz"):
        return cast(BinaryIO, gzip.open(archive))
    if archive.suffix == ".bz2":
        return cast(BinaryIO, bz2.open(archive))
    return archive.open("rb")


def unpack_gzip(archive: Path, target: Path, expected_bytes: int) -> None:
    """Write what the gzip file `archive` holds as `target`; raises as `unpack`."""
    member = Member(target.name, True, partial(_decompressed, archive))
    with explained_damage():
        write([member], target.parent, lambda name: name, expected_bytes, archive.name)


def write(members: Iterable[Member], folder: Path, place: Place, expected_bytes: int, title: str) -> None:
    """Write the wanted members below `folder`, none over another."""
    written = 0
    with shown_bytes(f"unpacking {title}", expected_bytes) as reach:
        for member in members:
            _check_name(member.name)
            target = place(member.name)
            if target is None:
                continue
            if not member.is_file:
                raise DamagedArchiveError(f"is refused: {member.name} in it is a link or a device, not a file")
            path = folder / target
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                raise DamagedArchiveError(f"is refused: it holds {member.name} twice")
            with member.open() as packed, path.open("xb") as file:
                while piece := packed.read(_PIECE_BYTES):
                    written += file.write(piece)
                    if written > MOST_GROWTH * expected_bytes:
                        raise DamagedArchiveError(f"is refused: far more than {expected_bytes:,} bytes come out of it")
                    reach(written)


def _check_name(name: str) -> None:
    """Raise DamagedArchiveError for a name that leads out of the archive: then nothing in it is trusted."""
    if not name or name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
        raise DamagedArchiveError(f"is refused: {name!r} in it leads out of its folder")


def of_tar(tar: tarfile.TarFile) -> Iterator[Member]:
    """Yield the members of a tar archive, one after the other as they lie in it, its folders left out."""
    for entry in tar:
        if not entry.isdir():
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
