"""Opening what may be a pipe, a device or a link by now, and bringing a new name to the disk."""

from __future__ import annotations

import errno
import os
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
