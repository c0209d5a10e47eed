"""Files that are whole or absent, folders that change places, a lock, free space, and errors of the system."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cotenant.errors import CotenantError
from cotenant.files import sync_name
from cotenant.text import size_words

TEMPORARY_SUFFIX = ".part"
ELSEWHERE = "give another place with --root DIR or DATA_DIRECTORY"


def write_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Write `pieces` as the file `path`, which appears once it is complete and on the disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        with temporary.open("wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def file_size(path: Path) -> int:
    """Return the bytes of the file at `path`, 0 if there is none."""
    # Another maker may move it away between the two calls.
    with suppress(FileNotFoundError):
        return path.stat().st_size if path.is_file() else 0
    return 0


def bytes_below(folder: Path) -> int:
    """Return the bytes of the files in `folder` and below it; a folder that disappears meanwhile has none."""
    return sum(file_size(Path(place, name)) for place, _, names in os.walk(folder) for name in names)


def swap_in(new: Path, target: Path) -> None:
    """Put the folder `new` in the place of `target`; the folder that stood there becomes the `.old` beside `new`."""
    if target.exists():
        target.rename(new.with_name(f"{new.name}.old"))
    new.rename(target)
    sync_name(target)


@contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file `path`, which a process releases as it dies; call `waiting` before waiting for another.

    The file stays: removing it would let a third process lock a new one of the same name.
    """
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def existing(path: Path) -> Path:
    """Return `path`, or the nearest folder above it that is there."""
    while not path.exists():
        path = path.parent
    return path


def free_disk_bytes(path: Path) -> int:
    """Return the free bytes of the disk on which `path` lies or would lie."""
    return shutil.disk_usage(existing(path)).free


def check_space(root: Path, what: str, needed_bytes: int, smaller: str | None = None) -> int:
    """Return the free bytes at `root`; raises CotenantError if they are fewer than `what` needs.

    `smaller` is the way to ask for less.
    """
    free_bytes = free_disk_bytes(root)
    if free_bytes < needed_bytes:
        instead = f", or ask for {smaller}" if smaller else ""
        raise CotenantError(
            f"{what} needs {size_words(needed_bytes)} and {root} has {size_words(free_bytes)} free.",
            f"Free some space, {ELSEWHERE}{instead}.",
        )
    return free_bytes


@contextmanager
def explained(name: str, root: Path) -> Iterator[None]:
    """Turn an OSError from obtaining `name` below `root` into a CotenantError."""
    try:
        yield
    except OSError as error:
        place = error.filename or root
        match error.errno:
            case errno.ENOSPC | errno.EDQUOT:
                sentence = f"The disk of {root} became full while {name} was made."
                remedy = f"Free some space, or {ELSEWHERE}, and start again: complete files are kept."
            case errno.EACCES | errno.EPERM | errno.EROFS:
                sentence = f"{place} cannot be used: {error.strerror}."
                remedy = f"Change its permissions, or {ELSEWHERE}."
            case errno.ENOTDIR | errno.EEXIST:
                sentence = f"{place} cannot be used as a folder: {error.strerror}."
                remedy = f"Move it away, or {ELSEWHERE}."
            case _:
                sentence = f"Making {name} ended at {place}: {error.strerror or error}."
                remedy = "Repair that and start again: complete files are kept."
        raise CotenantError(sentence, remedy) from error
