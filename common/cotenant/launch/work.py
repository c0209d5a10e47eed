"""Reads every tenant's processor time during a load, to find tenants that do not work while others are observed."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from cotenant.isolation.backend import LiveSlice
from cotenant.isolation.family import Family
from cotenant.launch.tenant import Tenant, followed
from cotenant.stats.tenants import Reading

LEAST_GAP_NS = 100_000_000
MOST_SHARE = 0.001
"""Share of one processor: a tenth of the runner's limit. If a reading costs more than 0.1 ms, readings become rarer,
and so do searches for new processes of slices that do not count."""


class WorkReadings:
    """Reads the processor time of tenants at most ten times a second, from before t0 to the last DONE.

    It reads a slice's own counter or, if the slice does not count, the clocks of its family.
    """

    def __init__(self, tenants: Collection[Tenant]) -> None:
        # A single tenant has no neighbours.
        beside = tenants if len(tenants) > 1 else ()
        self._families = followed([tenant for tenant in beside if tenant.live.processor_ns() is None])
        self._counters: dict[int, LiveSlice | Family] = {tenant.index: tenant.live for tenant in beside}
        self._counters |= self._families
        for tenant in beside:
            if tenant.index in self._families:
                tenant.live.begin(self._families[tenant.index])
        self._due_ns = self._search_due_ns = 0
        self.of_tenants: Mapping[int, list[Reading]] = {tenant: [] for tenant in self._counters}
        """For each tenant the time of each reading, and the nanoseconds of processor time used by then."""
        self.read()

    def look(self) -> None:
        """Read once, unless the last reading was too recent for its cost."""
        if time.perf_counter_ns() >= self._due_ns:
            if time.perf_counter_ns() >= self._search_due_ns:
                self._search()
            self._read()

    def read(self) -> dict[int, int]:
        """Read now; return the nanoseconds used by each tenant that is counted."""
        self._search()
        return self._read()

    def _search(self) -> None:
        begun_ns = time.thread_time_ns()
        for family in self._families.values():
            family.look()
        self._search_due_ns = _due_ns(begun_ns)

    def _read(self) -> dict[int, int]:
        begun_ns = time.thread_time_ns()
        read = ((tenant, counter.processor_ns()) for tenant, counter in self._counters.items())
        used = {tenant: used_ns for tenant, used_ns in read if used_ns is not None}
        for tenant, used_ns in used.items():
            self.of_tenants[tenant].append((time.perf_counter_ns(), used_ns))
        self._due_ns = _due_ns(begun_ns)
        return used


def _due_ns(begun_ns: int) -> int:
    """Return when to repeat work that began at this processor time: time that others took is no cost."""
    cost_ns = time.thread_time_ns() - begun_ns
    return time.perf_counter_ns() + max(LEAST_GAP_NS, round(cost_ns / MOST_SHARE))
