"""Where output, data and temporary files go, and what is free there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system behind some of our directories, which are named after what they are for."""

    purposes: tuple[str, ...]
    path: Path
    """The first of these directories, or what there is of the way to it."""
    free_bytes: int
    writable: bool


def disks(directories: Mapping[str, Path]) -> tuple[Disk, ...]:
    """Return the file systems on which the directories lie or would lie, each once; purposes by their directory."""
    found: dict[tuple[int, bool], Disk] = {}
    for purpose, directory in directories.items():
        path = directory
        while not os.path.isdir(path) and path != path.parent:  # noqa: PTH112 # is_dir raises where it may not look
            path = path.parent
        held = os.statvfs(path)
        key = path.stat().st_dev, os.access(path, os.W_OK | os.X_OK)
        first = found.get(key)
        before = first.purposes if first else ()
        place = first.path if first else path
        found[key] = Disk((*before, purpose), place, held.f_frsize * held.f_bavail, key[1])
    return tuple(found.values())
