"""Reads every tenant's processor time during a load, to see which tenants work while others are observed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping

from cotenant.launch.tenant import Tenant, families_of
from cotenant.stats.tenants import Reading

LEAST_GAP_NS = 100_000_000
MOST_SHARE = 0.001
"""Share of one processor: a tenth of the runner's limit. If a reading costs more than 0.1 ms, they become rarer."""


class WorkReadings:
    """Reads the processor time of tenants at most ten times a second, from before t0 to the last DONE.

    It reads a slice's own counter or, if the slice does not count, the clocks of the processes that it had before t0.
    """

    def __init__(self, tenants: Collection[Tenant]) -> None:
        self._counters = _counters(tenants)
        self._due_ns = 0
        self.of_tenants: Mapping[int, list[Reading]] = {tenant: [] for tenant in self._counters}
        """For each tenant the time of each reading, and the nanoseconds of processor time used by then."""
        self.read()

    def look(self) -> None:
        """Read once, unless the last reading was too recent for its cost."""
        if time.perf_counter_ns() >= self._due_ns:
            self.read()

    def read(self) -> dict[int, int]:
        """Read now; return the nanoseconds used by each tenant that is counted."""
        begin_ns = time.perf_counter_ns()
        used = {tenant: used_ns for tenant, counter in self._counters.items() if (used_ns := counter()) is not None}
        for tenant, used_ns in used.items():
            self.of_tenants[tenant].append((time.perf_counter_ns(), used_ns))
        cost_ns = time.perf_counter_ns() - begin_ns
        self._due_ns = begin_ns + max(LEAST_GAP_NS, round(cost_ns / MOST_SHARE))
        return used


def _counters(tenants: Collection[Tenant]) -> dict[int, Callable[[], int | None]]:
    """Return a function for each tenant that reads its processor time; none for a single one without neighbours."""
    if len(tenants) < 2:
        return {}
    uncounted = [tenant for tenant in tenants if tenant.live.processor_ns() is None]
    counters: dict[int, Callable[[], int | None]] = {tenant.index: tenant.live.processor_ns for tenant in tenants}
    counters |= {index: ProcessClocks(pids).processor_ns for index, pids in families_of(uncounted).items()}
    return counters


class ProcessClocks:
    """The processor time of some processes, all their threads included, by the kernel's clock of each."""

    def __init__(self, pids: Collection[int]) -> None:
        self._used_ns = dict.fromkeys(pids, 0)

    def processor_ns(self) -> int:
        """Return the sum in ns; a process that has ended counts with its last reading."""
        for pid in self._used_ns:
            with contextlib.suppress(OSError):
                # clock_getcpuclockid(3): the clock of another process, CPUCLOCK_SCHED of include/linux/posix-timers.h.
                self._used_ns[pid] = time.clock_gettime_ns(~pid << 3 | 2)
        return sum(self._used_ns.values())
