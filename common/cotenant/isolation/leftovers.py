"""Clears a run's leftovers: cgroups, also after the runner's death, and files in /dev/shm. Standard library only."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
from collections.abc import Iterator, Set
from pathlib import Path

from cotenant.isolation.backend import Location
from cotenant.isolation.processes import marked, send
from cotenant.isolation.v1 import V1
from cotenant.isolation.v2tree import Tree

SHM = Path("/dev/shm")


def clear_slices(location: Location, run: str) -> None:
    """Kill everything in a run's slices and remove them. Raises NotIsolatedError."""
    for place in _places(location):
        place.clear_run(run)


def thaw(location: Location, run: str) -> None:
    """Let everything in a run's slices go on; without cgroups every process with its marker. Raises OSError."""
    for place in _places(location):
        place.thaw_run(run)
    for pid in [] if location else marked(run):
        send(pid, signal.SIGCONT)


def _places(location: Location) -> Iterator[V1 | Tree]:
    v1, v2 = location.get("v1"), location.get("v2")
    if v1 is not None:
        yield V1({name: Path(path) for name, path in v1["mounts"].items()}, v1["base"])
    if v2 is not None:
        yield Tree(Path(v2["top"]), Path(v2["home"]))


def shared_files(root: Path = SHM) -> dict[tuple[int, int], int]:
    """Return the bytes of every file of this user in /dev/shm by its device and inode."""
    sizes: dict[tuple[int, int], int] = {}
    for directory, _, names in os.walk(root):
        for name in names:
            with contextlib.suppress(OSError):
                status = Path(directory, name).lstat()
                if stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid():
                    sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sizes


def new_shared_files(before: Set[tuple[int, int]], root: Path = SHM) -> dict[str, int] | None:
    """Return number and bytes of the new files in /dev/shm, in the form of records; None if none holds memory."""
    sizes = [size for file, size in shared_files(root).items() if size and file not in before]
    return {"files": len(sizes), "memory_bytes": sum(sizes)} if sizes else None
