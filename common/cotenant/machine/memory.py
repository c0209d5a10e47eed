"""The host's memory and swap, and the shared memory that data loaders hand their batches over in."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cotenant.procfs import fields, kilobytes, read_text


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Bytes of the whole host; `available` is what can be had without swapping (kernel: MemAvailable)."""

    total_bytes: int
    available_bytes: int
    swap_bytes: int
    swap_free_bytes: int


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """The file system at /dev/shm."""

    size_bytes: int
    free_bytes: int


def host_memory(root: Path = Path("/")) -> HostMemory:
    """Return the host's memory; 0 for what it does not say."""
    said = fields(read_text(root / "proc/meminfo"), ":")
    names = ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree")
    return HostMemory(*(kilobytes(said.get(name, "")) for name in names))


def shared_memory(root: Path = Path("/")) -> SharedMemory | None:
    """Return the size of /dev/shm and what is free of it, None where there is none."""
    try:
        held = os.statvfs(root / "dev/shm")
    except OSError:
        return None
    return SharedMemory(held.f_frsize * held.f_blocks, held.f_frsize * held.f_bavail)
