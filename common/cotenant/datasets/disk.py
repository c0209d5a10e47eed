"""Files that are whole or not there, folders that change places, a lock, free space, and what the system refuses."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cotenant.errors import CotenantError
from cotenant.text import size_words

TEMPORARY_SUFFIX = ".part"
ELSEWHERE = "give another place with --root DIR or DATA_DIRECTORY"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_FOLDER = (errno.ENOTDIR, errno.EEXIST, errno.ELOOP)


def write_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Write `pieces` as the file `path`, which appears complete and on the disk.

    The temporary name carries the process id: the worker of a killed maker may still be at the same file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(temporary, flags, 0o666), "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def file_size(path: Path) -> int | None:
    """Return the bytes of the regular file at `path`, None where there is none."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def bytes_below(folder: Path) -> int:
    """Return what the files in `folder` and below it take."""
    return sum(file_size(Path(place, name)) or 0 for place, _, names in os.walk(folder) for name in names)


def make_folder(path: Path) -> None:
    """Make a folder, or keep it; raises NotADirectoryError for a symbolic link, which may lead anywhere."""
    path.mkdir(exist_ok=True)
    if path.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "is a symbolic link", str(path))


def remove_temporaries(folder: Path) -> None:
    """Remove what workers that were killed left below `folder`."""
    for path in folder.rglob(f".*{TEMPORARY_SUFFIX}"):
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Bring the names in `folder` to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def swap_in(new: Path, target: Path) -> None:
    """Put the folder `new` in the place of `target`; what stood there becomes the `.old` beside `new`."""
    if target.exists():
        target.rename(new.with_name(f"{new.name}.old"))
    new.rename(target)
    sync_folder(target.parent)


@contextmanager
def locked(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock file `path`; a dead process has none.

    Where another process has it, call `waiting` and wait; without one, raise BlockingIOError. The file stays: removing
    it would let a third process lock a new one of the same name.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is None:
                raise
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def free_disk_bytes(path: Path) -> int:
    """Return the free bytes of the disk on which `path` lies or would lie."""
    while not os.path.lexists(path):
        path = path.parent
    return shutil.disk_usage(path).free


def check_space(root: Path, what: str, needed_bytes: int, smaller: str | None = None) -> int:
    """Return the free bytes at `root`; raises CotenantError where they are fewer than `what` needs.

    `smaller` is how less would be asked for.
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
    """Turn what the system refused while `name` was obtained below `root` into a CotenantError."""
    try:
        yield
    except OSError as error:
        raise CotenantError(*_explanation(error, name, root)) from error


def _explanation(error: OSError, name: str, root: Path) -> tuple[str, str]:
    """Return the sentence and the remedy."""
    place = error.filename or root
    if error.errno in _FULL:
        again = f"Free some space, or {ELSEWHERE}, and start again: complete files are kept."
        return f"The disk of {root} became full while {name} was made.", again
    if error.errno in _FORBIDDEN:
        return f"{place} cannot be written: {error.strerror}.", f"Change its permissions, or {ELSEWHERE}."
    if error.errno in _NO_FOLDER:
        return f"{place} cannot be used as a folder: {error.strerror}.", f"Move it away, or {ELSEWHERE}."
    again = "Mend that and start again: complete files are kept."
    return f"Making {name} ended at {place}: {error.strerror or error}.", again
