"""Files that are whole or not there, and folders that change places in one step."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

TEMPORARY_SUFFIX = ".part"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def write_file(path: Path, pieces: Iterable[bytes]) -> int:
    """Write `pieces` as the file `path`, which appears complete and on the disk, and return its bytes.

    The temporary name carries the process id: the worker of a killed maker may still be at the same file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(temporary, flags, 0o666), "wb") as file:
            size = sum(file.write(piece) for piece in pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return size


def complete_size(path: Path) -> int | None:
    """Return the bytes of the regular file at `path`, None where there is none."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def make_folder(path: Path) -> None:
    """Make a folder, or keep it; raises NotADirectoryError for a symbolic link, which may lead anywhere."""
    path.mkdir(exist_ok=True)
    if path.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "is a symbolic link", str(path))


def remove_temporaries(folder: Path) -> None:
    """Remove what workers that were killed left below `folder`."""
    for path in folder.rglob(f".*{TEMPORARY_SUFFIX}"):
        path.unlink(missing_ok=True)


def settle(folder: Path) -> None:
    """Bring the names in `folder` and in every folder below it to the disk."""
    for place, _, _ in os.walk(folder):
        sync_folder(Path(place))


def sync_folder(folder: Path) -> None:
    """Bring the names in `folder` to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def swap_in(new: Path, target: Path) -> None:
    """Put the folder `new` in the place of `target`, in one step where the system can; remove the old one.

    On its way out the old one is called `new` with `.old` behind it.
    """
    if not target.exists():
        new.rename(target)
        sync_folder(target.parent)
        return
    old = new.with_name(f"{new.name}.old")
    if _exchange(new, target):
        new.rename(old)
    else:
        target.rename(old)
        new.rename(target)
    sync_folder(target.parent)
    shutil.rmtree(old)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two names in one step (renameat2); False where the file system or the C library cannot."""
    import ctypes

    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS):
        return False
    raise OSError(number, os.strerror(number), str(first))
