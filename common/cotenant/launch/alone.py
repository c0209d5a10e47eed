"""Turns alone at the end of a launch without blocks: once all are measured together, a tenant of each kind goes on
alone for a few seconds in the same processes.

All others get STOP and leave; tenants whose turns are still to come are held still.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from cotenant.isolation.backend import Counters
from cotenant.isolation.slice import Slice
from cotenant.launch.conductor import HELD_WITHIN_NS, LATEST_NS
from cotenant.launch.design.shared import AFTER_THAW_NS, AFTER_THAW_ON_DEVICES_NS
from cotenant.launch.rank import RankPhase
from cotenant.launch.tenant import Tenant, say_enough
from cotenant.machine.topology import Machine
from cotenant.results.record import Observed
from cotenant.stats.describe import INTERVAL_OBSERVATIONS

QUICK_KEPT_S, QUICK_MOST_S = 2.0, 10.0
"""Seconds that the observations of a turn alone last, and the most seconds if an interval needs more of them."""
LEAST_OBSERVATIONS = 2
"""It holds even if they are long: a single one does not show whether another would agree."""
LEAVING_S = 5.0
"""The seconds within which tenants usually leave after STOP."""
RECENT = 9
"""The number of last observations together that tell the length of one."""


@dataclass(frozen=True, slots=True)
class GoesOn:
    """A tenant that goes on alone, and the tenants with equal slices for which its rate alone stands."""

    tenant: int
    stands_for: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TurnAlone:
    """A turn alone: the time within which an observation counts, and the slice's counters at its ends."""

    start_ns: int
    end_ns: int
    before: Counters
    after: Counters


@dataclass(frozen=True, slots=True)
class WentOn:
    """The end of a launch: the time when all were measured, the turns alone, and why others could not have one."""

    together_ns: int
    turns: Mapping[int, TurnAlone] = field(default_factory=dict)
    missed: Mapping[int, str] = field(default_factory=dict)


def one_of_each_kind(slices: Sequence[Slice], machine: Machine, cells: Sequence[str] = ()) -> Iterator[GoesOn]:
    """Yield the first tenant of each kind of slice and, in a mix, of each of the tenants' `cells` in it."""
    for group in _alike(slices, machine):
        firsts = {cells[tenant] if cells else "": tenant for tenant in reversed(group)}
        yield from (GoesOn(tenant, group) for tenant in sorted(firsts.values()))


def observations_alone(observation_ns: float) -> int:
    """Return the approximate number of observations of this length in a turn: as many as fill two seconds and an
    interval needs, at most as many as fill ten seconds, and never fewer than two."""
    wanted = max(INTERVAL_OBSERVATIONS, math.ceil(QUICK_KEPT_S * 1e9 / observation_ns))
    return max(LEAST_OBSERVATIONS, min(wanted, int(QUICK_MOST_S * 1e9 / observation_ns)))


class AloneTurns:
    """Takes the tenants that go on through their turns, one after the other, once all others have left.

    The launch calls `look` about ten times a second, and sends STOP to the tenants that it returns.
    """

    def __init__(self, goers: Sequence[Tenant], others: Sequence[Tenant], left_s: float) -> None:
        """Freeze the tenants that go on; the launch may still take `left_s` seconds."""
        self.together_ns = self._looked_ns = time.perf_counter_ns()
        self._leaving = [*others]
        self._waiting: list[Tenant] = []
        self._missed: dict[int, str] = {}
        self._turns: dict[int, TurnAlone] = {}
        self._tenant: Tenant | None = None
        self._last_ns = self.together_ns + round(1e9 * (left_s - LEAVING_S))
        self._held_by_ns = self.together_ns + HELD_WITHIN_NS
        self._from_ns = 0
        self._before = Counters()
        self._held_ns: dict[int, int] = {}
        for tenant in goers:
            left_s -= LEAVING_S + _estimated_s(tenant)
            why = self._why_not(tenant, left_s)
            if why:
                self._missed[tenant.index] = why
                self._leaving.append(tenant)
            else:
                self._waiting.append(tenant)
        for tenant in self._waiting:
            self._hold(tenant)
        self.dismissed = tuple(self._leaving)
        """The tenants that get STOP at once."""

    @property
    def is_over(self) -> bool:
        return self._tenant is None and not self._waiting

    @property
    def went_on(self) -> WentOn:
        return WentOn(self.together_ns, self._turns, self._missed)

    def look(self) -> list[Tenant]:
        """Begin or end a turn if it is time; return the tenants for which the launch is then over."""
        now_ns = time.perf_counter_ns()
        is_late, self._looked_ns = now_ns > self._looked_ns + LATEST_NS, now_ns
        if self._tenant is None:
            held = all(map(self._is_held, self._waiting))
            if not any(tenant.alive for tenant in self._leaving) and (held or now_ns > self._held_by_ns):
                self._begin(now_ns, held)
            return []
        tenant = self._tenant
        if is_late:
            self._missed.setdefault(tenant.index, "the runner was held up while it was alone")
        if tenant.lost:
            self._missed.setdefault(tenant.index, "it ended while it was alone")
        elif not tenant.all_ranks(RankPhase.DONE):
            if self._is_enough(tenant, now_ns):
                say_enough([tenant])
            return []
        if not self._made_alone(tenant):
            self._missed.setdefault(tenant.index, "it made no observation while it was alone")
        if tenant.index not in self._missed:
            self._turns[tenant.index] = TurnAlone(self._from_ns, now_ns, self._before, tenant.live.counters())
        self._tenant, self._leaving = None, [tenant]
        return [] if tenant.lost else [tenant]

    def release(self, tenant: Tenant) -> None:
        """Thaw a tenant that is frozen; leave any other as it is."""
        held_ns = self._held_ns.pop(tenant.index, None)
        if held_ns is not None:
            with contextlib.suppress(OSError):
                tenant.live.thaw()
            for rank in tenant.ranks.values():
                rank.rests.append((held_ns, time.perf_counter_ns()))

    def _begin(self, now_ns: int, held: bool) -> None:
        while self._waiting:
            tenant = self._waiting.pop(0)
            if tenant.lost:
                self._missed[tenant.index] = "it ended before its turn alone"
                continue
            if not held:
                self._missed[tenant.index] = "another user was not held still before its turn"
            self.release(tenant)
            on_devices = bool(tenant.spec.slice.accelerators)
            self._from_ns = now_ns + (AFTER_THAW_ON_DEVICES_NS if on_devices else AFTER_THAW_NS)
            self._before, self._tenant = tenant.live.counters(), tenant
            return

    def _why_not(self, tenant: Tenant, left_s: float) -> str:
        """Return why a tenant cannot have a turn; "" if it can."""
        if tenant.lost:
            return "it has ended"
        if tenant.all_ranks(RankPhase.DONE):
            return "it had made all observations that it can before the others had made theirs"
        if left_s < 0:
            return "--timeout leaves no time to observe it alone"
        if (self._waiting or tenant.several) and tenant.live.held_by is None:
            return "nothing here can hold it still until no other user runs"
        return ""

    def _hold(self, tenant: Tenant) -> None:
        if tenant.live.held_by is not None:
            self._held_ns[tenant.index] = time.perf_counter_ns()
            with contextlib.suppress(OSError):  # The tenant has ended, which its turn will notice.
                tenant.live.freeze()

    def _is_held(self, tenant: Tenant) -> bool:
        """Return whether a waiting tenant is held still; True if it cannot be, or has ended."""
        try:
            return tenant.index not in self._held_ns or tenant.lost or tenant.live.frozen()
        except OSError:
            return True

    def _made_alone(self, tenant: Tenant) -> list[Observed]:
        return [row for row in tenant.ranks[0].observations if row.start_ns >= self._from_ns]

    def _is_enough(self, tenant: Tenant, now_ns: int) -> bool:
        """Return whether its observations alone last two seconds and suffice for an interval, or ten seconds have
        passed with two of them, or the time is over."""
        rows = self._made_alone(tenant)
        lasting_s = sum(row.took_ns for row in rows) / 1e9
        filled = len(rows) >= INTERVAL_OBSERVATIONS and lasting_s >= QUICK_KEPT_S
        over = len(rows) >= LEAST_OBSERVATIONS and now_ns >= self._from_ns + QUICK_MOST_S * 1e9
        return filled or over or now_ns >= self._last_ns


def _estimated_s(tenant: Tenant) -> float:
    """Return the seconds that a tenant's turn will take, by the length of its last observations beside the others."""
    rows = tenant.ranks[0].observations[-RECENT:]
    if not rows:
        return 0.0
    lasting_ns = float(median(row.took_ns for row in rows))
    return observations_alone(lasting_ns) * lasting_ns / 1e9


def _alike(slices: Sequence[Slice], machine: Machine) -> list[tuple[int, ...]]:
    """Return tenants grouped by kind of slice: equal in number and kind of cores, threads, nodes, memory, devices."""
    processors = {processor.id: processor for processor in machine.processors}
    kinds = defaultdict(list)
    for slice_ in slices:
        of_slice = [processors[number] for number in slice_.processors]
        kind = (
            len({processor.core for processor in of_slice}),
            tuple(sorted((processor.kind, processor.cache_bytes) for processor in of_slice)),
            len(slice_.nodes),
            slice_.memory_bytes,
            tuple((device.name, device.memory_bytes, device.node in slice_.nodes) for device in slice_.accelerators),
        )
        kinds[kind].append(slice_.tenant)
    return [tuple(tenants) for tenants in kinds.values()]
