"""What can be in the way of a set, each in one sentence with its remedy."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cotenant.datasets.manifest import FAKE, FILE_NAME, REAL, Manifest
from cotenant.errors import EXIT_FOREIGN_FILES, CotenantError
from cotenant.text import size_words

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_FOLDER = (errno.ENOTDIR, errno.EEXIST, errno.ELOOP)
UNASKED_BYTES = 2_000_000_000
"""More is written for nobody who has not asked for it."""
ELSEWHERE = "give another place with --root DIR or DATA_DIRECTORY"
_PACKAGES = {"PIL": "pillow"}


class ForeignFilesError(CotenantError):
    """Files that nobody here made stand in a set's place. A set of ours comes there whole, with its manifest."""

    exit_status = EXIT_FOREIGN_FILES


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


def refuse_foreign(folder: Path, name: str, manifest: Manifest | None, kind: str) -> None:
    """Raise CotenantError where `folder` holds what a set of `kind` must not replace.

    That is what nobody here made (ForeignFilesError), since it may be a person's own, and a real set, where a fake one
    is asked for.
    """
    if folder.is_symlink():
        raise ForeignFilesError(
            f"{folder} cannot be used as a folder: it is a symbolic link, and what it leads to may be your own.",
            f"Move it away, or {ELSEWHERE}.",
        )
    if manifest is not None and manifest.name == name and (manifest.kind == FAKE or kind == REAL):
        return
    if manifest is not None and manifest.name == name:
        raise CotenantError(
            f"{folder} holds the real set, which a fake one never replaces.",
            f"Use it with FAKE_DATASET=0, or {ELSEWHERE} for fake sets.",
        )
    if folder.exists() and any(folder.iterdir()):
        ready = ", then name it with --from DIR if it is the set" if kind == REAL else ""
        # A manifest that cannot be read may be ours, and says nothing of the files.
        problem = CotenantError if (folder / FILE_NAME).exists() else ForeignFilesError
        raise problem(
            f"{folder} holds files without a manifest of this set, so they may be your own.",
            f"Move the folder away{ready}, or {ELSEWHERE}.",
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
        again = f"Free some space, or {ELSEWHERE}, and start again: complete files are kept."
        return f"The disk of {root} became full while {name} was made.", again
    if error.errno in _FORBIDDEN:
        return f"{place} cannot be written: {error.strerror}.", f"Change its permissions, or {ELSEWHERE}."
    if error.errno in _NO_FOLDER:
        return f"{place} cannot be used as a folder: {error.strerror}.", f"Move it away, or {ELSEWHERE}."
    again = "Mend that and start again: complete files are kept."
    return f"Making {name} ended at {place}: {error.strerror or error}.", again
