"""Measures free space: memory and swap, /dev/shm, and the disks of our directories."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cotenant.machine.nodes import device_nodes, node_bytes
from cotenant.procfs import fields, kilobytes, mounted_systems, read_text


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Bytes of the whole host; `available` is usable without swapping (kernel: MemAvailable)."""

    total_bytes: int
    available_bytes: int
    swap_bytes: int
    swap_free_bytes: int


@dataclass(frozen=True, slots=True)
class DevShm:
    """The file system at /dev/shm."""

    size_bytes: int
    free_bytes: int


def host_memory(root: Path = Path("/")) -> HostMemory:
    """Return the host's memory without the devices' memory that the kernel counts; 0 for a missing number."""
    values = fields(read_text(root / "proc/meminfo"), ":")
    names = ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree")
    total, available, *swap = (kilobytes(values.get(name, "")) for name in names)
    for node in device_nodes(root):
        total, available = total - node_bytes(root, node, "MemTotal"), available - node_bytes(root, node, "MemFree")
    return HostMemory(max(0, total), max(0, available), *swap)


def shared_memory(root: Path = Path("/")) -> DevShm | None:
    """Return the size of /dev/shm and its free bytes, None if there is none."""
    try:
        usage = shutil.disk_usage(root / "dev/shm")
    except OSError:
        return None
    return DevShm(usage.total, usage.free)


def is_in_memory(directory: Path, root: Path = Path("/")) -> bool:
    """Return whether files below a directory, even if it is still to be made, are in memory and on no disk."""
    mounted = {mount.point: mount.kind for mount in mounted_systems(root)}
    place = next((path for path in (directory, *directory.parents) if path in mounted), None)
    return place is not None and mounted[place] in ("tmpfs", "ramfs")


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system behind some of our directories, which are named after their purpose."""

    purposes: tuple[str, ...]
    path: Path
    """The first of these directories, or the part of its path that exists."""
    free_bytes: int
    writable: bool


def disks(directories: Mapping[str, Path]) -> tuple[Disk, ...]:
    """Return the file systems of the directories, each once; `directories` by their purpose.

    A file system without any room, as /proc, is no disk: nothing can be made there, and an attempt reports that.
    """
    by_device: dict[tuple[int, bool], Disk] = {}
    for purpose, directory in directories.items():
        above = (directory, *directory.parents)
        path = next(path for path in above if os.path.isdir(path))  # noqa: PTH112 # is_dir raises without permission
        usage = shutil.disk_usage(path)
        if not usage.total:
            continue
        key = path.stat().st_dev, os.access(path, os.W_OK | os.X_OK)
        first = by_device.get(key) or Disk((), path, usage.free, key[1])
        by_device[key] = replace(first, purposes=(*first.purposes, purpose))
    return tuple(by_device.values())
