"""What can be in the way of a set, each in one sentence with its remedy."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cotenant.datasets.manifest import FAKE, Manifest
from cotenant.errors import CotenantError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_FOLDER = (errno.ENOTDIR, errno.EEXIST, errno.ELOOP)
_ELSEWHERE = "give another place with --root DIR or DATA_DIRECTORY"
_PACKAGES = {"PIL": "pillow"}


def size_words(size_bytes: int) -> str:
    """Return bytes as people read them, in decimal units: `31 MB`, `9.6 GB`."""
    size = float(size_bytes)
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 999.5 and len(units) > 1:
        size /= 1000
        del units[0]
    unit = units[0]
    return f"{size:.1f} {unit}" if size < 9.95 and unit != "bytes" else f"{size:.0f} {unit}"


def free_disk_bytes(path: Path) -> int:
    """Return the free bytes of the disk on which `path` lies or would lie."""
    while not os.path.lexists(path):
        path = path.parent
    return shutil.disk_usage(path).free


def check_space(root: Path, name: str, size: str, needed_bytes: int) -> int:
    """Return the free bytes at `root`; raises CotenantError where they are fewer than needed."""
    free_bytes = free_disk_bytes(root)
    if free_bytes < needed_bytes:
        smaller = "" if size == "small" else ", or ask for --size small"
        raise CotenantError(
            f"{name} ({size}) needs {size_words(needed_bytes)} and {root} has {size_words(free_bytes)} free.",
            f"Free some space, {_ELSEWHERE}{smaller}.",
        )
    return free_bytes


def refuse_foreign(folder: Path, name: str, manifest: Manifest | None) -> None:
    """Raise CotenantError where `folder` holds what no maker made: it may be a person's own."""
    if folder.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "It is a symbolic link", str(folder))
    if manifest is not None and (manifest.name, manifest.kind) == (name, FAKE):
        return
    if folder.exists() and any(folder.iterdir()):
        raise CotenantError(
            f"{folder} holds files without the manifest of a fake set, so they may be your own.",
            f"Move the folder away, or {_ELSEWHERE}.",
        )


@contextmanager
def explained(name: str, root: Path) -> Iterator[None]:
    """Turn what the system refused while `name` was made below `root` into a CotenantError."""
    try:
        yield
    except OSError as error:
        raise CotenantError(*_explanation(error, name, root)) from error
    except ImportError as error:
        package = _PACKAGES.get(error.name or "", error.name or str(error))
        raise CotenantError(f"The package '{package}' is missing.", f"pip install {package}") from error


def _explanation(error: OSError, name: str, root: Path) -> tuple[str, str]:
    """Return the sentence and the remedy."""
    place = error.filename or root
    if error.errno in _FULL:
        again = f"Free some space, or {_ELSEWHERE}, and start again: complete files are kept."
        return f"The disk of {root} became full while {name} was made.", again
    if error.errno in _FORBIDDEN:
        return f"{place} cannot be written: {error.strerror}.", f"Change its permissions, or {_ELSEWHERE}."
    if error.errno in _NO_FOLDER:
        return f"{place} cannot be used as a folder: {error.strerror}.", f"Move it away, or {_ELSEWHERE}."
    again = "Mend that and start again: complete files are kept."
    return f"Making {name} ended at {place}: {error.strerror or error}.", again
