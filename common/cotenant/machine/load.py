"""Reads the kernel's counters of the whole host: busy processors and their users, swap, steal, heat, memory kills."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from cotenant.machine.cpu import thermal_throttles
from cotenant.machine.nvidia import Slowed, slowed
from cotenant.procfs import fields, numbered, read_text, to_int

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
    """The load by others. `busy` is in processors, `busiest` names the processes; both belong to a window of time."""

    average: float | None
    """Over the last minute, our own past work included."""
    running: int | None
    """The least number of threads runnable in several looks, without the looking one."""
    busy: float | None = None
    busiest: tuple[Spender, ...] = ()
    seen: tuple[str, ...] = ()
    """The processes that a short look found running, as `make (pid 7)`; none if nothing ran throughout it."""


def load_now(root: Path = Path("/")) -> Load:
    """Return the load average, and the threads runnable throughout 8 ms: not one that wakes up now and then."""
    counts: list[int] = []
    average: float | None = None
    for look in range(_LOOKS):
        if look:
            time.sleep(_LOOK_S)
        words = read_text(root / "proc/loadavg").split()
        with contextlib.suppress(ValueError, IndexError):
            counts.append(int(words[3].partition("/")[0]))
            average = float(words[0])
    running = max(0, min(counts) - 1) if counts else None
    return Load(average, running, seen=_running(root) if running else ())


def _running(root: Path) -> tuple[str, ...]:
    """Return the processes with a running first thread, except this one."""
    seen = []
    for pid in numbered(root / "proc"):
        name, _, words = read_text(root / f"proc/{pid}/stat").partition(" (")[2].rpartition(") ")
        if words.startswith("R ") and pid != os.getpid():
            seen.append(f"{name} (pid {pid})")
    return tuple(seen)


def load_over(window_s: float) -> Load:
    """Return the load as `load_now` does, and the users of the processors in a window that we sleep through."""
    before, begin_s = _used(), time.monotonic()
    now = load_now()
    time.sleep(window_s)
    after, elapsed_s = _used(), time.monotonic() - begin_s
    return Load(now.average, now.running, *spent(before, after, elapsed_s))


class Times(NamedTuple):
    """Processor time of a process in seconds; `waited_s` is the time of ended children."""

    name: str
    used_s: float
    waited_s: float = 0.0
    parent: int = 0


Used = tuple[float, dict[int, Times]]
"""Seconds that the processors were busy for others since boot, and the times of processes, by their pid."""


def spent(before: Used, after: Used, elapsed_s: float) -> tuple[float, tuple[Spender, ...]]:
    """Return the number of processors busy between two readings, and the processes behind most of it.

    Processes that came and went in between are named by the parent that waited for them.
    """
    busy = max(0.0, after[0] - before[0]) / elapsed_s
    waited_s = _waited(before[1], after[1])
    spenders = []
    for pid, now in after[1].items():
        then = before[1].get(pid, Times(now.name, 0.0))
        for name, used_s in ((now.name, now.used_s - then.used_s), (f"children of {now.name}", waited_s[pid])):
            if used_s / elapsed_s >= _WORTH_NAMING:
                spenders.append(Spender(pid, name, used_s / elapsed_s))
    return busy, tuple(sorted(spenders, key=lambda spender: (-spender.share, spender.pid))[:3])


def _waited(before: dict[int, Times], after: dict[int, Times]) -> dict[int, float]:
    """Return the processor time, between two readings, of children that had ended by the second one.

    A parent inherits all that its child ever used: the part before the first reading is subtracted.
    """
    waited_s = {pid: now.waited_s - (before[pid].waited_s if pid in before else 0.0) for pid, now in after.items()}
    for pid in before.keys() - after.keys():
        ancestor = before[pid].parent
        while ancestor in before and ancestor not in after:
            ancestor = before[ancestor].parent
        if ancestor in waited_s:
            waited_s[ancestor] -= before[pid].used_s + before[pid].waited_s
    return waited_s


def processor_seconds() -> tuple[float, float, float]:
    """Return the seconds since boot of all processors: in total, busy, and stolen by the host of a guest.

    All 0 if the host hides them.
    """
    try:
        times = psutil.cpu_times()
    except OSError:
        return 0.0, 0.0, 0.0
    total_s = sum(times[:8])  # Guest times, behind these, are inside user and nice.
    return total_s, total_s - times.idle - times.iowait - times.steal, times.steal


def processes() -> dict[int, Times]:
    """Return the times of every visible process, by its pid."""
    seen: dict[int, Times] = {}
    # psutil reads /proc/stat for it, which a host may hide.
    with contextlib.suppress(OSError):
        for process in psutil.process_iter(["name", "cpu_times", "ppid"]):
            if (times := process.info["cpu_times"]) is not None:
                waited_s = times.children_user + times.children_system
                parent, name = process.info["ppid"] or 0, process.info["name"] or ""
                seen[process.pid] = Times(name, times.user + times.system, waited_s, parent)
    return seen


def _used() -> Used:
    others = processes()
    others.pop(os.getpid(), None)
    # Looking at every process takes time, which is not other programs' work.
    return processor_seconds()[1] - time.process_time(), others


@dataclass(frozen=True, slots=True)
class HostCounts:
    """Counts since boot; None if this host does not count."""

    swapped_in_bytes: int
    swapped_out_bytes: int
    processor_s: float
    stolen_s: float
    processor_throttles: int | None
    devices: tuple[Slowed, ...]


def host_counts(
    processors: Collection[int], pci: Collection[str], root: Path = Path("/"), nvml: Any = None
) -> HostCounts:
    """Return the counts now, of these processors and NVIDIA devices (PCI ids)."""
    # Not psutil.swap_memory: it takes every page for 4 KiB.
    seen = fields(read_text(root / "proc/vmstat"))
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    processor_s, _, stolen_s = processor_seconds()
    return HostCounts(
        swapped_in_bytes=_count(seen, "pswpin") * page_bytes,
        swapped_out_bytes=_count(seen, "pswpout") * page_bytes,
        processor_s=processor_s,
        stolen_s=stolen_s,
        processor_throttles=thermal_throttles(processors, root),
        devices=slowed(pci, root, nvml) if pci else (),
    )


def memory_kills(root: Path = Path("/")) -> int:
    """Return the number of processes that the kernel killed for memory since boot, anywhere on this host."""
    return _count(fields(read_text(root / "proc/vmstat")), "oom_kill")


def since(before: HostCounts, after: HostCounts, killed_outside: int) -> dict[str, Any]:
    """Return the difference of two readings, in the form of records, with the kills outside of the slices."""
    processor_s = after.processor_s - before.processor_s
    return {
        "swapped_in_bytes": after.swapped_in_bytes - before.swapped_in_bytes,
        "swapped_out_bytes": after.swapped_out_bytes - before.swapped_out_bytes,
        "memory_kills_outside": killed_outside,
        "stolen_share": (after.stolen_s - before.stolen_s) / processor_s if processor_s > 0 else 0.0,
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
    # A processor that was taken offline takes its count with it.
    return None if before is None or after is None else max(0, after - before)


def _count(seen: dict[str, str], name: str) -> int:
    return to_int(seen.get(name, "")) or 0
