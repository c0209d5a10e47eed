"""Processor time that neither the slices nor the runner used, and who did."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cotenant.machine.load import Spender, descendants, processes, processor_ticks, spent
from cotenant.meters.sampler import Counted, Look
from cotenant.procfs import Process

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Reading:
    at_ns: int
    ticks: int
    busy_ticks: int
    stolen_ticks: int
    ours_ns: int | None
    """Of the slices and the runner; None where a slice does not count."""


class ForeignLoad:
    """`/proc/stat` less the slices' own counters and the runner's processor time.

    Where slices do not count (isolation `affinity` and `none`), the processes below the runner stand for them: their
    own times and those of their children that were waited for, read at both ends only.
    Interrupts count as foreign, a tenant's own ones, too: the kernel does not say whose they are.
    """

    name = "foreign"

    def __init__(self, processor_total: int, root: Path = Path("/")) -> None:
        self._total = processor_total
        self._root = root
        self._slices: Sequence[Counted] = ()
        self._most: float | None = None

    def start(self, slices: Sequence[Counted]) -> None:
        self._slices, self._most = slices, None
        # First who is there, which takes its time, then the counters.
        self._processes = processes(self._root)
        self._first = self._last = self._read()

    def sample(self) -> Look:
        now = self._read()
        load = _foreign(self._last, now)
        self._last = now
        if load is None:
            return {}
        self._most = max(self._most or 0.0, load)
        return {("host", "foreign_processors"): load}

    def result(self) -> dict[str, Any]:
        first, last = self._first, self._last
        after = processes(self._root)
        elapsed_ns = last.at_ns - first.at_ns
        if last.ticks <= first.ticks or elapsed_ns <= 0:
            return {}
        load = _foreign(first, last)
        if counted := load is not None:
            busy_ns = (last.busy_ticks - first.busy_ticks) * TICK_NS
        else:
            # Read anew beside the processes: those of a moment ago fit the samples, not this.
            now = self._read()
            elapsed_ns, busy_ns = now.at_ns - first.at_ns, (now.busy_ticks - first.busy_ticks) * TICK_NS
            load = _processors(busy_ns - (_tree_ticks(after) - _tree_ticks(self._processes)) * TICK_NS, elapsed_ns)
        return {
            "processors": load,
            "most_processors": self._most,
            "busy_processors": _processors(busy_ns, elapsed_ns),
            "host_processors": self._total,
            "stolen_share": (last.stolen_ticks - first.stolen_ticks) / (last.ticks - first.ticks),
            "busiest": [asdict(spender) for spender in self._busiest(after, elapsed_ns)],
            "own_time_by": "slices" if counted else "processes",
        }

    def absent(self) -> dict[str, str]:
        return {} if self._last.ticks else {"foreign": "/proc/stat, which this host hides"}

    def _read(self) -> _Reading:
        ticks = processor_ticks(self._root)
        used = [slice_.counters().processor_ns for slice_ in self._slices]
        counted = [used_ns for used_ns in used if used_ns is not None]
        ours_ns = sum(counted) + time.process_time_ns() if len(counted) == len(used) else None
        return _Reading(time.perf_counter_ns(), *ticks, ours_ns)

    def _busiest(self, after: dict[int, Process], elapsed_ns: int) -> tuple[Spender, ...]:
        """Return the foreign processes, there at both ends, that used most; by name and share of one processor."""
        ours = descendants(after, os.getpid())
        seen = [
            {pid: (process.name, process.ticks) for pid, process in at_end.items() if pid not in ours}
            for at_end in (self._processes, after)
        ]
        return spent((0, seen[0]), (0, seen[1]), elapsed_ns / TICK_NS)[1]


def _foreign(before: _Reading, after: _Reading) -> float | None:
    """Return the processors that were busy for others between two readings; None where slices do not count."""
    if before.ours_ns is None or after.ours_ns is None or after.at_ns <= before.at_ns:
        return None
    busy_ns = (after.busy_ticks - before.busy_ticks) * TICK_NS
    return _processors(busy_ns - (after.ours_ns - before.ours_ns), after.at_ns - before.at_ns)


def _processors(busy_ns: int, elapsed_ns: int) -> float:
    # Ticks are coarse: a little below zero is none.
    return max(0.0, busy_ns / elapsed_ns)


def _tree_ticks(tree: dict[int, Process]) -> int:
    """Return the ticks of this process and all below it, the ended ones included: who waits for them inherits them."""
    return sum(tree[pid].ticks + tree[pid].waited_ticks for pid in descendants(tree, os.getpid()))
