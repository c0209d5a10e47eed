"""One suite at a time on a machine: an flock, and who holds it."""

from __future__ import annotations

import fcntl
import os
from datetime import datetime
from pathlib import Path

from cotenant.errors import CotenantError

LOCK_VARIABLE = "COTENANT_LOCK"
PLACES = (Path("/run/lock"), Path("/tmp"))


def lock_path() -> Path:
    """Return the machine's lock file: the same for every user, unless the environment names another."""
    if named := os.environ.get(LOCK_VARIABLE):
        return Path(named)
    place = next((place for place in PLACES if os.access(place, os.W_OK)), PLACES[-1])
    return place / "cotenant.lock"


class SuiteLock:
    """Held from `acquire` until the process ends or `release`; the kernel drops it with the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock. Raises CotenantError naming the holder's command, pid and start."""
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise CotenantError(
                f"Another suite is running on this machine: {holder}.",
                "Wait for it, or end it; two would disturb each other.",
            ) from None
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        """Open for reading, which is enough for flock, so that another user's file serves as well."""
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            try:
                return os.open(self._path, flags)
            except FileNotFoundError:
                return os.open(self._path, flags | os.O_CREAT, 0o644)
        except OSError as error:
            raise CotenantError(
                f"The lock {self._path} cannot be opened: {error.strerror}.",
                f"Name another file in {LOCK_VARIABLE}.",
            ) from error


def _holder(descriptor: int) -> str:
    """Describe who holds the lock, from the kernel's own list: it cannot be out of date."""
    inode = os.fstat(descriptor).st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        _, kind, _, _, pid, place, *_ = line.split()
        if kind == "FLOCK" and place.rpartition(":")[2] == str(inode) and int(pid) > 0:
            return _describe(int(pid))
    return "its process cannot be seen from here"


def _describe(pid: int) -> str:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        started = Path(f"/proc/{pid}").stat().st_mtime
    except OSError:
        return f"pid {pid}"
    return f"pid {pid}, '{command[:80]}', started {datetime.fromtimestamp(started):%Y-%m-%d %H:%M:%S}"
