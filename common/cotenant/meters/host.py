"""Memory left on the host and held by slices, and the energy of processor packages, while tenants are timed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.isolation.backend import LiveSlice
from cotenant.machine.space import host_memory
from cotenant.meters.sampler import Look, SampleSpread
from cotenant.procfs import numbered, read_int, read_text


class MemoryLeft:
    """Memory available without swapping (the kernel's MemAvailable), and the free swap."""

    name = "memory"

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._available, self._swap_free = SampleSpread(), SampleSpread()

    def start(self, slices: Sequence[LiveSlice]) -> None:
        """Do nothing: there is nothing to count from."""

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
        return {"available_bytes": self._available.result(), "swap_free_bytes": self._swap_free.result()}

    def absent(self) -> dict[str, str]:
        return {} if self._available.n else {"memory": "/proc/meminfo, which this host hides"}


LACKS = "slices that count memory: --isolation v2 or v1"


class SliceMemory:
    """Memory that the kernel charges to each slice: its processes, and the page cache of the files that they read."""

    name = "tenants"

    def __init__(self, tenants: Sequence[int]) -> None:
        """Take the numbers of the `tenants` whose slices `start` is given, in that order."""
        self._numbers = tuple(map(str, tenants))
        self._slices: Sequence[LiveSlice] = ()
        self._spreads: dict[str, SampleSpread] = {}

    def start(self, slices: Sequence[LiveSlice]) -> None:
        self._slices = slices

    def sample(self) -> Look:
        seen: Look = {}
        for number, slice_ in zip(self._numbers, self._slices, strict=True):
            if (used_bytes := slice_.memory_used_bytes()) is not None:
                self._spreads.setdefault(number, SampleSpread()).add(used_bytes)
                seen[self.name, number, "memory_used_bytes"] = used_bytes
        return seen

    def result(self) -> dict[str, Any]:
        return {number: {"memory_used_bytes": spread.result()} for number, spread in self._spreads.items()}

    def absent(self) -> dict[str, str]:
        return {} if self._spreads else {self.name: LACKS}


READABLE = "a bare machine with RAPL, and root's leave to read its counters: chmod a+r /sys/class/powercap/*/energy_uj"


@dataclass(slots=True)
class _Package:
    zone: Path
    range_uj: int
    last_uj: int
    used_uj: int = 0

    def look(self) -> None:
        """Add the energy used since the last look. The counter begins again at its range, in minutes at full load."""
        now_uj = read_int(self.zone / "energy_uj")
        if now_uj is None:
            return
        step_uj = now_uj - self.last_uj
        self.used_uj += step_uj if step_uj >= 0 else step_uj + self.range_uj
        self.last_uj = now_uj


class PackageEnergy:
    """Joules per package, the runner's share included. It is only used if a launch owns the packages whole."""

    name = "packages"

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._packages: list[_Package] = []

    def start(self, slices: Sequence[LiveSlice]) -> None:
        zones = self._root / "sys/class/powercap"
        places = [zones / f"intel-rapl:{number}" for number in numbered(zones, "intel-rapl:")]
        self._packages = [
            _Package(zone, range_uj, now_uj)
            for zone in places
            # Beside packages there may be `psys`, the whole machine.
            if read_text(zone / "name").startswith("package")
            and (now_uj := read_int(zone / "energy_uj")) is not None
            and (range_uj := read_int(zone / "max_energy_range_uj")) is not None
        ]

    def sample(self) -> Look:
        for package in self._packages:
            package.look()
        return {}

    def result(self) -> dict[str, Any]:
        return {read_text(package.zone / "name"): {"energy_j": package.used_uj / 1e6} for package in self._packages}

    def absent(self) -> dict[str, str]:
        return {} if self._packages else {"packages": READABLE}
