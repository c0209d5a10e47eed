"""Opening what somebody else may have put in a file's place: a pipe, a device, a link."""

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
