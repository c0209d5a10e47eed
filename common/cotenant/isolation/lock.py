"""One suite at a time on a machine: an flock, and its holder."""

from __future__ import annotations

import fcntl
import os
import stat
from datetime import datetime
from pathlib import Path

import psutil

from cotenant.confidential import words_without
from cotenant.errors import CotenantError

LOCK_VARIABLE = "COTENANT_LOCK"
PLACES = (Path("/run/lock"), Path("/tmp"))


def lock_path() -> Path:
    """Return the machine's lock file: the same for every user, unless the environment names another."""
    if named := os.environ.get(LOCK_VARIABLE):
        return Path(named)
    # Only a place that everyone may write to: if /run/lock is reserved for root, root would lock alone.
    place = next((place for place in PLACES if place.is_dir() and place.stat().st_mode & stat.S_IWOTH), PLACES[-1])
    return place / "cotenant.lock"


class SuiteLock:
    """A lock, held from `acquire` until `release`, or until the process ends: then the kernel drops it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock. Raises CotenantError, naming the holder's command, pid and start if it is held."""
        assert self._descriptor is None
        try:
            descriptor = _opened(self._path)
            if not _is_free(descriptor):
                holder = _holder(descriptor)
                os.close(descriptor)
                raise CotenantError(*_refusal(holder))
            self._descriptor = descriptor
        except OSError as error:
            raise CotenantError(
                f"The lock {self._path} cannot be taken: {os.strerror(error.errno or 0)}.",
                f"Name another file in {LOCK_VARIABLE}.",
            ) from error

    def __enter__(self) -> SuiteLock:
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def lock_holder(path: Path) -> int | None:
    """Return the process that holds a lock, 0 if it cannot be seen from here, None if there is none.

    Raises CotenantError for a lock that cannot be opened.
    """
    try:
        descriptor = _opened(path)
    except OSError as error:
        raise CotenantError(f"The lock {path} cannot be opened: {os.strerror(error.errno or 0)}.") from error
    try:
        return None if _is_free(descriptor) else _holder(descriptor) or 0
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    """Open for reading, which is enough for flock, so that another user's file serves as well.

    A link is not followed, and a pipe does not make us wait.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            pass
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            continue
        # Every user must be able to open it, whatever our umask.
        os.fchmod(descriptor, 0o644)
        return descriptor


def _is_free(descriptor: int) -> bool:
    """Take the lock; return whether it was free."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> int | None:
    """Return the lock's holder from the kernel's own list, which cannot be out of date; None if it is unseen."""
    inode = str(os.fstat(descriptor).st_ino)
    for line in Path("/proc/locks").read_text().splitlines():
        _, kind, _, _, holder, place, *_ = line.split()
        # By the inode alone: some file systems give files another device than the kernel's list.
        if kind == "FLOCK" and place.rpartition(":")[2] == inode and int(holder) > 0:
            return int(holder)
    return None


def _refusal(holder: int | None) -> tuple[str, str]:
    running, why = "Another suite is running on this machine", "two would disturb each other."
    if holder is None:
        return f"{running}: its process cannot be seen from here.", f"Wait for it: {why}"
    return f"{running}: {described_holder(holder)}.", f"Wait for it, or interrupt it with `kill -INT {holder}`: {why}"


def described_holder(pid: int) -> str:
    """Return the pid, command and start of a process, and its user if that is not us."""
    try:
        process = psutil.Process(pid)
        of_user = "" if process.uids().real == os.getuid() else f" of {process.username()}"
        command, started = " ".join(words_without(process.cmdline())), datetime.fromtimestamp(process.create_time())
    except (OSError, psutil.Error):  # OSError: psutil reads /proc/stat for the start, which a host may hide.
        return f"pid {pid}"
    return f"pid {pid}{of_user}, '{command[:80]}', started {started:%Y-%m-%d %H:%M:%S}"
