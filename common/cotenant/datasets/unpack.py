"""Takes files out of archives: those whose names a set's rules match, to the places that the rules give.

No permission, owner, link or device of an archive reaches the disk: only the bytes of regular files do.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, cast

from cotenant.datasets.progress import shown_progress

# A data set does not unpack to more than this times its expected size; an archive made to fill a disk does.
MOST_GROWTH = 3
_PIECE_BYTES = 1 << 18


class DamagedArchiveError(Exception):
    """An archive is not whole, or holds members that no data set does; the message follows the archive's name."""


Place = Callable[[str], str | None]
"""A member's name -> its path below the set's folder, None for one that is not needed."""

Member = tuple[str, Callable[[], IO[bytes]]]
"""The name of a regular file in an archive, and a function that opens it before the next one is asked for."""


def unpack(archives: Iterable[Path], folder: Path, place: Place, expected_bytes: int, title: str) -> None:
    """Write the members that `place` wants below `folder`; raises DamagedArchiveError, and OSError from the disk.

    `expected_bytes` is about the size of all members; more than three times as much is refused.
    """
    written = 0
    with shown_progress(f"unpacking {title}", expected_bytes, in_bytes=True) as reach:
        try:
            for archive in archives:
                for name, opened in members_of(archive):
                    if (path := place(name)) is None:
                        continue
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    with opened() as packed, (folder / path).open("wb") as file:
                        while piece := packed.read(_PIECE_BYTES):
                            written += file.write(piece)
                            reach(written)
                            if written > MOST_GROWTH * expected_bytes:
                                raise DamagedArchiveError(
                                    f"holds far more than {expected_bytes:,} bytes, and is refused"
                                )
        except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error, RuntimeError) as error:
            raise DamagedArchiveError(f"is no whole archive: {error}") from error


def members_of(archive: Path) -> Iterator[Member]:
    """Yield the files of a zip or tar archive as they lie in it, or the one file in a gzip file."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            yield from (
                (entry.filename, partial(packed.open, entry)) for entry in packed.infolist() if not entry.is_dir()
            )
    elif archive.suffix == ".gz" and not archive.name.endswith(".tar.gz"):
        yield archive.stem, partial(_decompressed, archive)
    else:
        with _decompressed(archive) as stream:
            yield from _of_tar(stream)
            # `tarfile` never reads as far as the checksum of the compression, which stands at the very end.
            while stream.read(_PIECE_BYTES):
                pass


def _decompressed(archive: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(archive)) if archive.suffix in (".gz", ".tgz") else archive.open("rb")


def _of_tar(stream: IO[bytes]) -> Iterator[Member]:
    """Yield the files of a tar archive; one inside it, as each of ImageNet's classes is, is read through."""
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for entry in filter(tarfile.TarInfo.isreg, tar):
            opened = cast(Callable[[], IO[bytes]], partial(tar.extractfile, entry))
            if entry.name.endswith(".tar"):
                with opened() as inner:
                    yield from _of_tar(inner)
            else:
                yield entry.name, opened
