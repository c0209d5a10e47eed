"""What the kernel counts of the whole host, read before and after a launch: swap, steal, heat, memory kills."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.machine.cpu import thermal_throttles
from cotenant.machine.device_state import Slowed, slowed
from cotenant.machine.load import processor_ticks
from cotenant.procfs import fields, read_text, to_int


@dataclass(frozen=True, slots=True)
class HostCounts:
    """Counts since boot; None is what this host does not count."""

    swapped_in_bytes: int
    swapped_out_bytes: int
    memory_kills: int
    """Processes killed for memory, anywhere on this host, those of slices included."""
    ticks: int
    stolen_ticks: int
    processor_throttles: int | None
    devices: tuple[Slowed, ...]


def host_counts(
    processors: Collection[int], pci: Collection[str], root: Path = Path("/"), nvml: Any = None
) -> HostCounts:
    """Return the counts now, of these processors and NVIDIA devices (PCI ids)."""
    seen = fields(read_text(root / "proc/vmstat"))
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    ticks, _, stolen = processor_ticks(root)
    return HostCounts(
        swapped_in_bytes=_count(seen, "pswpin") * page_bytes,
        swapped_out_bytes=_count(seen, "pswpout") * page_bytes,
        memory_kills=_count(seen, "oom_kill"),
        ticks=ticks,
        stolen_ticks=stolen,
        processor_throttles=thermal_throttles(processors, root),
        devices=slowed(pci, root, nvml) if pci else (),
    )


def memory_kills(root: Path = Path("/")) -> int:
    """Return how many processes the kernel has killed for memory since boot, anywhere on this host."""
    return _count(fields(read_text(root / "proc/vmstat")), "oom_kill")


def since(before: HostCounts, after: HostCounts, own_kills: int) -> dict[str, Any]:
    """Return what happened between two readings, as records keep it; `own_kills` are those in the slices."""
    ticks = after.ticks - before.ticks
    return {
        "swapped_in_bytes": after.swapped_in_bytes - before.swapped_in_bytes,
        "swapped_out_bytes": after.swapped_out_bytes - before.swapped_out_bytes,
        "memory_kills_outside": max(0, after.memory_kills - before.memory_kills - own_kills),
        "stolen_share": (after.stolen_ticks - before.stolen_ticks) / ticks if ticks > 0 else 0.0,
        "processor_throttles": _difference(before.processor_throttles, after.processor_throttles),
        "devices": [
            {
                "index": late.index,
                "power_ns": _difference(early.power_ns, late.power_ns),
                "thermal_ns": _difference(early.thermal_ns, late.thermal_ns),
            }
            for early, late in zip(before.devices, after.devices, strict=False)
            if early.index == late.index
        ],
    }


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _count(seen: dict[str, str], name: str) -> int:
    return to_int(seen.get(name, "")) or 0
