"""The load: the measured part of a launch, from GO to the last DONE, and the decision when it is enough."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from cotenant.isolation.slice import Slice
from cotenant.launch.allowances import Allowance
from cotenant.launch.conductor import Conductor
from cotenant.launch.design.passed import is_narrow
from cotenant.launch.design.shared import Rounds
from cotenant.launch.limits import Limits
from cotenant.launch.rank import Go, Rank, RankPhase
from cotenant.launch.tenant import Tenant, say_enough
from cotenant.launch.work import WorkReadings
from cotenant.meters.meters import Meters
from cotenant.stats.budget import Amount, latest_ns
from cotenant.stats.describe import INTERVAL_OBSERVATIONS

READING_S = 0.1
GO_DELAY_NS = 50_000_000
LOOKS = 20
"""After a look at n observations the next is due at n + 1 + n / LOOKS: each look takes the runner's time, and makes it
more likely to find an interval that is narrow by chance."""
SPENT = 1.25
"""Observations end after this many budgets if they suffice for an interval: all are made if steps are only a little
slower than in the warm-up."""


class MeasuredLoad:
    """The counters and meters of the tenants from GO to the last DONE; the constructor makes the GO.

    `gos` holds each tenant's GO: one moment for all, and in a mix different amounts.
    """

    def __init__(
        self,
        limits: Limits,
        given: Mapping[int, Allowance],
        sampling: Meters,
        tenants: Collection[Tenant],
        rounds: Rounds | None = None,
        slots: Sequence[Slice] = (),
    ) -> None:
        """Take tenants through `rounds`, in which they meet in `slots`; else all run until each has its amount."""
        # WorkReadings looks at all processes of the host, which would delay GO if t0 were already set.
        self.work = WorkReadings(tenants)
        self._sampling = sampling
        sampling.start([tenant.live for tenant in tenants])
        for tenant in tenants:
            tenant.before = tenant.live.counters()
        self._processor_ns, self._start_ns = time.process_time_ns(), time.perf_counter_ns()
        self.t0_ns = self._start_ns + GO_DELAY_NS
        settle_ns = round(limits.settle_s * 1e9)
        self.gos = {
            tenant: Go(self.t0_ns, allowance.most, settle_ns, allowance.alone) for tenant, allowance in given.items()
        }
        self.enough = Enough(limits, self.gos, given)
        self.meters: dict[str, Any] = {}
        self.stop_ns = 0
        """The time of the last DONE, or 0: a tenant's load ends then, even if the tenant reports a later end."""
        self.conductor: Conductor | None = None
        if rounds is not None:
            numbers = {tenant: go.given.number for tenant, go in self.gos.items()}
            self.conductor = Conductor(rounds, tenants, self.t0_ns + settle_ns, self.work.read, slots, numbers)

    def due_s(self) -> float:
        """Return the seconds after which `look` has to be called, even without a message."""
        return READING_S if self.conductor is None else min(READING_S, self.conductor.due_s())

    def look(self, tenants: Collection[Tenant], now_ns: int) -> None:
        """Act on the messages of tenants so far, and read their processor time."""
        if self.conductor is not None:
            self.conductor.look()
            # This limits pairs and a crowd's first round: only other rounds are planned within the budget.
            if self.enough.is_late(now_ns):
                self.conductor.stop()
            if self.conductor.over:
                self.enough.say(tenants)
        else:
            self.enough.look(tenants, now_ns)
        self.work.look()

    def end(self, survivors: Collection[Tenant]) -> None:
        """Read all counters when all are measured."""
        self.stop_ns = time.perf_counter_ns()
        load_ns = self.stop_ns - self._start_ns
        processor_ns = time.process_time_ns() - self._processor_ns
        if self.conductor is not None:
            conducting_ns = self.conductor.conducted.processor_ns
            processor_ns -= conducting_ns
            self.meters["conductor_processor_share"] = conducting_ns / load_ns
        self.meters["runner_processor_share"] = processor_ns / load_ns
        self.work.read()
        for tenant in survivors:
            tenant.after = tenant.live.counters()
        self.meters |= self._sampling.result(self.t0_ns)


class Enough:
    """Ends observations once half of each tenant's interval is at most the requested share of its median; or when the
    budget is spent and each tenant has enough observations for an interval; or when the budget's grace is over, too.

    In a mix they also end once each tenant has made its least amount. Tenants that go on alone are not told.
    """

    def __init__(self, limits: Limits, gos: Mapping[int, Go], given: Mapping[int, Allowance] | None = None) -> None:
        self._share = limits.until_interval
        self._goers = {tenant: go.together.given.repeat for tenant, go in gos.items() if go.alone}
        """The number of observations together of each tenant that goes on alone."""
        start_ns = next(go.t0_ns + go.settle_ns for go in gos.values())
        self._spent_ns = self._latest_ns = None
        if limits.budget_s is not None:
            self._spent_ns = start_ns + round(SPENT * limits.budget_s * 1e9)
            self._latest_ns = start_ns + latest_ns(round(limits.budget_s * 1e9))
        self._skip = {tenant: go.given.skip for tenant, go in gos.items()}
        mixed = any(allowance.grown for allowance in (given or {}).values())
        self._least = {tenant: allowance.least.repeat for tenant, allowance in (given or {}).items()} if mixed else {}
        self._due: dict[int, int] = {}
        self._narrow: dict[int, bool] = {}

    def look(self, tenants: Collection[Tenant], now_ns: int) -> None:
        """Tell all of `tenants` to end once each has enough; each then finishes its current observation.

        A tenant of several ranks is never told: one more observation on some ranks would hang their collectives. Beside
        such a tenant the others go on too, until all tenants of a mix have made their least amounts.
        """
        several = any(tenant.several for tenant in tenants)
        early = not several and (self._is_spent(tenants, now_ns) or all(map(self._is_narrow, tenants)))
        if early or self._is_reached(tenants):
            self.say(tenants)

    def is_of(self, tenant: Tenant) -> bool:
        """Return whether a tenant has made its observations beside the others, even if it goes on alone."""
        if tenant.index not in self._goers:
            return tenant.all_ranks(RankPhase.DONE)
        return all(
            rank.has_come_to(RankPhase.DONE) or len(rank.observations) >= self._goers[tenant.index]
            for rank in tenant.ranks.values()
        )

    def is_late(self, now_ns: int) -> bool:
        """Return whether the budget and its grace are over."""
        return self._latest_ns is not None and now_ns >= self._latest_ns

    def say(self, tenants: Collection[Tenant]) -> None:
        """Tell all of `tenants` that it is enough, except tenants that go on alone. Each is told once."""
        for tenant in tenants:
            if tenant.index in self._goers:
                # It goes on, and its present observation is the last one beside the others.
                made = max(len(rank.observations) for rank in tenant.ranks.values())
                self._goers[tenant.index] = min(self._goers[tenant.index], made + 1)
        say_enough(tenant for tenant in tenants if tenant.index not in self._goers)

    def _is_reached(self, tenants: Collection[Tenant]) -> bool:
        """Return whether every tenant of a mix has made its least amount, as in a launch of equal tenants."""
        if not self._least or not tenants:
            return False
        return all(
            rank.has_come_to(RankPhase.DONE) or len(rank.observations) >= self._least[tenant.index]
            for tenant in tenants
            for rank in tenant.ranks.values()
        )

    def _is_spent(self, tenants: Collection[Tenant], now_ns: int) -> bool:
        if self._spent_ns is None or now_ns < self._spent_ns:
            return False
        return self.is_late(now_ns) or all(
            self._kept_observations(tenant) >= INTERVAL_OBSERVATIONS for tenant in tenants
        )

    def _is_narrow(self, tenant: Tenant) -> bool:
        if self._share is None:
            return False
        count = self._kept_observations(tenant)
        if count >= self._due.get(tenant.index, 1):
            self._due[tenant.index] = count + 1 + count // LOOKS
            observations = tenant.ranks[0].observations[self._skip[tenant.index] :]
            self._narrow[tenant.index] = is_narrow(observations, self._share)
        return self._narrow.get(tenant.index, False)

    def _kept_observations(self, tenant: Tenant) -> int:
        return len(tenant.ranks[0].observations) - self._skip[tenant.index]


def expected_s(ranks: Iterable[Rank], given: Amount, settle_s: float) -> float | None:
    """Return the seconds from t0 to the last observation's end, by the slowest rank's last warm-up batch; None if no
    rank has timed one."""
    last_ns = [rank.ready.warm_up_ns[-1] for rank in ranks if rank.ready and rank.ready.warm_up_ns]
    expected_ns = max(last_ns, default=0) * given.batches
    return settle_s + expected_ns / 1e9 if expected_ns > 0 else None
