"""How much memory the host has left while tenants are timed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cotenant.machine.space import host_memory
from cotenant.meters.sampler import Counted, Look, Spread


class MemoryLeft:
    """What could be had without swapping (the kernel's MemAvailable), and the free swap."""

    name = "memory"

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._available, self._swap_free = Spread(), Spread()

    def start(self, slices: Sequence[Counted]) -> None:
        self._available, self._swap_free = Spread(), Spread()

    def sample(self) -> Look:
        now = host_memory(self._root)
        if not now.total_bytes:
            return {}
        self._available.add(now.available_bytes)
        self._swap_free.add(now.swap_free_bytes)
        return {("host", "available_bytes"): now.available_bytes}

    def result(self) -> dict[str, Any]:
        if not self._available.n:
            return {}
        return {"available_bytes": self._available.told(), "swap_free_bytes": self._swap_free.told()}

    def absent(self) -> dict[str, str]:
        return {} if self._available.n else {"memory": "/proc/meminfo, which this host hides"}
