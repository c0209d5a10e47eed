"""Processor time that neither the slices nor the runner used, and the processes that used it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cotenant.isolation.backend import LiveSlice
from cotenant.machine.load import Times, processes, processor_seconds, spent
from cotenant.meters.sampler import Look

LEAST_S = 0.25
"""The kernel counts by ticks of 10 ms: over a millisecond a single tick would be ten processors."""


@dataclass(frozen=True, slots=True)
class _Reading:
    at_s: float
    processor_s: float
    busy_s: float
    stolen_s: float
    ours_s: float | None
    """Processor time of the slices and the runner; None if a slice does not count."""


class ForeignLoad:
    """The busy time of `/proc/stat` less the slices' counters and the runner's processor time.

    If slices do not count (isolation `affinity` and `none`), the processes below the runner stand for them: their
    own times and the times of children that they waited for, read at both ends only.
    Interrupts count as foreign, a tenant's own ones, too: the kernel does not attribute them.
    """

    name = "foreign"

    def __init__(self, processor_total: int) -> None:
        self._total = processor_total
        self._slices: Sequence[LiveSlice] = ()
        self._most: float | None = None

    def start(self, slices: Sequence[LiveSlice]) -> None:
        self._slices, self._most = slices, None
        # Processes first, which takes time, then the counters.
        self._processes = processes()
        family = _family(self._processes)
        self._family, self._family_s = family.keys(), sum(family.values())
        self._first = self._last = self._looked = self._read()

    def sample(self) -> Look:
        self._last = now = self._read()
        if now.at_s - self._looked.at_s < LEAST_S:
            return {}
        load = _foreign(self._looked, now)
        self._looked = now
        if load is None:
            return {}
        self._most = max(self._most or 0.0, load)
        return {("host", "foreign_processors"): load}

    def result(self) -> dict[str, Any]:
        first, last = self._first, self._last
        after = processes()
        family = _family(after)
        if last.processor_s <= first.processor_s or last.at_s <= first.at_s:
            return {}
        load = _foreign(first, last)
        # Without counts of slices, read the host's again, beside the processes: else the last sample's fit.
        end = self._read() if load is None else last
        elapsed_s, busy_s = end.at_s - first.at_s, end.busy_s - first.busy_s
        own_time_by = "slices"
        if load is None:
            own_time_by = "processes"
            load = _processors(busy_s - (sum(family.values()) - self._family_s), elapsed_s)
        strangers = {pid: used for pid, used in after.items() if pid not in family}
        # Processes that ended below us are ours; no other process has waited for them.
        before = {pid: used for pid, used in self._processes.items() if pid not in self._family}
        return {
            "processors": load,
            "most_processors": self._most,
            "busy_processors": _processors(busy_s, elapsed_s),
            "host_processors": self._total,
            "stolen_share": (last.stolen_s - first.stolen_s) / (last.processor_s - first.processor_s),
            "busiest": [asdict(spender) for spender in spent((0, before), (0, strangers), elapsed_s)[1]],
            "own_time_by": own_time_by,
        }

    def absent(self) -> dict[str, str]:
        return {} if self._last.processor_s else {"foreign": "/proc/stat, which this host hides"}

    def _read(self) -> _Reading:
        times_s = processor_seconds()
        used = [slice_.counters().processor_ns for slice_ in self._slices]
        counted = [used_ns for used_ns in used if used_ns is not None]
        ours_s = (sum(counted) + time.process_time_ns()) / 1e9 if len(counted) == len(used) else None
        return _Reading(time.perf_counter_ns() / 1e9, *times_s, ours_s)


def _foreign(before: _Reading, after: _Reading) -> float | None:
    """Return the processors that were busy for others between two readings; None if slices do not count."""
    if before.ours_s is None or after.ours_s is None or after.at_s <= before.at_s:
        return None
    return _processors(after.busy_s - before.busy_s - (after.ours_s - before.ours_s), after.at_s - before.at_s)


def _processors(busy_s: float, elapsed_s: float) -> float:
    # The kernel counts by ticks, which are coarse: a value slightly below zero is none.
    return max(0.0, busy_s / elapsed_s)


def _family(seen: Mapping[int, Times]) -> dict[int, float]:
    """Return the processor seconds of this process and of all below it, by their pids.

    Ended processes are included: a parent that waits for a child inherits its times.
    """
    ours = {os.getpid()}
    while below := {pid for pid, times in seen.items() if times.parent in ours} - ours:
        ours |= below
    return {pid: times.used_s + times.waited_s for pid, times in seen.items() if pid in ours}
