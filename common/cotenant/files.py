"""Opening what may be a pipe, a device or a link by now, waiting for a descriptor, a new name on the disk."""

from __future__ import annotations

import errno
import os
import select
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path, *, follow: bool = False) -> BinaryIO:
    """Open a regular file for reading, at once: a pipe would wait for its writer, a device may have no end.

    A link is followed where `follow` says so. Raises OSError, for what is no regular file with EINVAL.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    file = open(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return file


def sync_name(path: Path) -> None:
    """Bring the name of a new file or folder to the disk. Raises OSError."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def readable(descriptor: int, wait_s: float = 0.0) -> bool:
    """Tell whether something can be read, a process has ended or a peer has left; `wait_s` is how long to wait for it.

    By poll(2): select(2) ends with descriptor 1023, and a fleet has more.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(wait_s * 1000))
