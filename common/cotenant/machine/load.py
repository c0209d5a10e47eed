"""What the kernel counts of the whole host: who keeps the processors busy, swap, steal, heat and memory kills."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.machine.cpu import thermal_throttles
from cotenant.machine.nvidia import Slowed, slowed
from cotenant.procfs import Process, fields, numbered, process_of, read_text, to_int

_LOOKS, _LOOK_S = 5, 0.002
_WORTH_NAMING = 0.05


@dataclass(frozen=True, slots=True)
class Spender:
    """A process and the share of one processor that it used."""

    pid: int
    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Load:
    """What others do. `busy` is in processors, `busiest` names who did it; both only of a window of time."""

    average: float | None
    """Over the last minute; our own past work is in it."""
    running: int | None
    """The threads that were runnable at each of several looks, the one that looked left out."""
    busy: float | None = None
    busiest: tuple[Spender, ...] = ()


def load_now(root: Path = Path("/")) -> Load:
    """Return averages and what is runnable throughout 8 ms: a thread that only wakes up now and then does not count."""
    counts: list[int] = []
    average: float | None = None
    for look in range(_LOOKS):
        if look:
            time.sleep(_LOOK_S)
        words = read_text(root / "proc/loadavg").split()
        with contextlib.suppress(ValueError, IndexError):
            counts.append(int(words[3].partition("/")[0]))
            average = float(words[0])
    return Load(average, max(0, min(counts) - 1) if counts else None)


def load_over(window_s: float, root: Path = Path("/")) -> Load:
    """Return the load as `load_now` does, and who used the processors in a window that we sleep through."""
    before, begin_s = _used(root), time.monotonic()
    now = load_now(root)
    time.sleep(window_s)
    after, elapsed_s = _used(root), time.monotonic() - begin_s
    return Load(now.average, now.running, *spent(before, after, elapsed_s * os.sysconf("SC_CLK_TCK")))


Used = tuple[int, dict[int, tuple[str, int]]]
"""Clock ticks that the host was busy since boot, and name and ticks of each process but our own."""


def spent(before: Used, after: Used, elapsed_ticks: float) -> tuple[float, tuple[Spender, ...]]:
    """Return how many processors were busy between two readings, and the processes behind most of it."""
    busy = max(0, after[0] - before[0]) / elapsed_ticks
    spenders = [
        Spender(pid, name, share)
        for pid, (name, ticks) in after[1].items()
        if pid in before[1] and (share := (ticks - before[1][pid][1]) / elapsed_ticks) >= _WORTH_NAMING
    ]
    return busy, tuple(sorted(spenders, key=lambda spender: (-spender.share, spender.pid))[:3])


def processor_ticks(root: Path = Path("/")) -> tuple[int, int, int]:
    """Return the clock ticks since boot of all processors: in all, busy, and stolen by the host of a guest.

    proc(5): user nice system idle iowait irq softirq steal; guest times are inside user and nice.
    """
    words = read_text(root / "proc/stat", limit_bytes=4096).partition("\n")[0].split()[1:9]
    ticks = [to_int(word) or 0 for word in words] + [0] * (8 - len(words))
    idle, stolen = ticks[3] + ticks[4], ticks[7]
    return sum(ticks), sum(ticks) - idle - stolen, stolen


def processes(root: Path = Path("/")) -> dict[int, Process]:
    """Return every process that can be seen, by its pid."""
    seen = {pid: process_of(pid, root) for pid in numbered(root / "proc")}
    return {pid: process for pid, process in seen.items() if process is not None}


def descendants(tree: Mapping[int, Process], of: int) -> set[int]:
    """Return `of`, where it is among these processes, and all below it."""
    below: dict[int, list[int]] = {}
    for pid, process in tree.items():
        below.setdefault(process.parent, []).append(pid)
    family, ahead = set[int](), [of] if of in tree else []
    while ahead:
        pid = ahead.pop()
        if pid not in family:
            family.add(pid)
            ahead += below.get(pid, [])
    return family


def _used(root: Path) -> Used:
    ours = os.getpid()
    others = {pid: (process.name, process.ticks) for pid, process in processes(root).items() if pid != ours}
    return processor_ticks(root)[1], others


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
