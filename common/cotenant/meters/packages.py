"""Energy of processor packages, by the counters that the kernel shows below `powercap` (RAPL).

Documentation/power/powercap/powercap.rst; AMD's processors stand below the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.meters.sampler import Counted, Look
from cotenant.procfs import numbered, read_int, read_text

READABLE = "a bare machine with RAPL, and root's leave to read its counters: chmod a+r /sys/class/powercap/*/energy_uj"


@dataclass(slots=True)
class _Package:
    zone: Path
    range_uj: int
    last_uj: int
    used_uj: int = 0

    def look(self) -> None:
        """Add what was used since the last look. The counter begins anew at its range, in minutes at full load."""
        now_uj = read_int(self.zone / "energy_uj")
        if now_uj is None:
            return
        step_uj = now_uj - self.last_uj
        self.used_uj += step_uj if step_uj >= 0 else step_uj + self.range_uj
        self.last_uj = now_uj


class PackageEnergy:
    """Joules per package, the runner's share included. Only for a launch that owns the packages whole."""

    name = "packages"

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._packages: list[_Package] = []

    def start(self, slices: Sequence[Counted]) -> None:
        zones = self._root / "sys/class/powercap"
        found = [zones / f"intel-rapl:{number}" for number in numbered(zones, "intel-rapl:")]
        self._packages = [
            _Package(zone, range_uj, now_uj)
            for zone in found
            # Beside packages there may be `psys`, which is all of the machine.
            if read_text(zone / "name").startswith("package")
            and (now_uj := read_int(zone / "energy_uj")) is not None
            and (range_uj := read_int(zone / "max_energy_range_uj")) is not None
        ]

    def sample(self) -> Look:
        for package in self._packages:
            package.look()
        return {}

    def result(self) -> dict[str, Any]:
        return {read_text(one.zone / "name"): {"energy_j": one.used_uj / 1e6} for one in self._packages}

    def absent(self) -> dict[str, str]:
        return {} if self._packages else {"packages": READABLE}
