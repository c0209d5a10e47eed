"""Directories that are a run's alone, removed whatever its tenants have made of them. The reaper uses it, too."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from cotenant.finding import Finding

REMEDY = "Remove it by hand, as root where it is another user's."


def remove_tree(top: Path) -> str:
    """Remove a directory and all in it; return what stays as a sentence, "" where nothing does.

    A directory of ours that is closed to us is opened first. No link is followed.
    """
    with contextlib.suppress(OSError):
        top.unlink()  # A tenant may have put a link or a file in its place; a directory is none.
    try:
        shutil.rmtree(top, ignore_errors=True)
        if not os.path.lexists(top):
            return ""
        _open_up(top)
        shutil.rmtree(top, ignore_errors=True)
        shutil.rmtree(top)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"What is left in {top} cannot be removed ({error.filename}: {error.strerror})."
    except RecursionError:
        return f"What is left in {top} is nested too deep to be removed."
    return ""


def cleared(directories: Iterable[Path]) -> tuple[Finding, ...]:
    """Remove the temporary directories of a launch; return what is to be said of what stays."""
    left = " ".join(filter(None, map(remove_tree, directories)))
    return (Finding("files_left", "warning", f"{left} The next launch finds it there.", REMEDY),) if left else ()


def _open_up(top: Path) -> None:
    with contextlib.suppress(OSError):
        _unlock(top)
        for _, names, _, descriptor in os.fwalk(top):
            for name in names:
                with contextlib.suppress(OSError):
                    _unlock(name, descriptor)


def _unlock(name: Path | str, parent: int | None = None) -> None:
    """Give its owner all rights on a directory. Raises OSError for what is none of ours, and for a link."""
    # To open it so takes no right on it; and whoever puts a link in its place now, we have it by its descriptor.
    descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{descriptor}").chmod(stat.S_IRWXU)
    finally:
        os.close(descriptor)
