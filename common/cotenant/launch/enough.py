"""Ends the observations of a launch before the last: its intervals are narrow, or its budget is spent."""

from __future__ import annotations

from collections.abc import Collection

from cotenant.launch.rank import Go
from cotenant.launch.tenant import Tenant
from cotenant.launch.terms import Terms
from cotenant.stats.median import relative_half_width

LOOKS = 20
"""After a look at n observations the next is due once a twentieth more has come in: a look takes the runner's time, and
every further one makes it more likely to find an interval that is narrow by chance."""
SPENT = 1.25
"""Budgets after which observations end: those that take a little longer than the warm-up had it are all made."""
LEAST_KEPT = 2
"""A rate from a single observation is none."""


class Enough:
    """Looks at what tenants have observed until half of each interval is at most the asked share of its median, or the
    budget is spent and each tenant has two kept observations."""

    def __init__(self, terms: Terms, go: Go) -> None:
        self._share = terms.until_interval
        self._spent_ns = None if terms.budget_s is None else go.t0_ns + round(SPENT * terms.budget_s * 1e9)
        self._skip = go.given.skip
        self._due: dict[int, int] = {}
        self._narrow: dict[int, bool] = {}
        self._told = False

    def look(self, tenants: Collection[Tenant], now_ns: int) -> None:
        """Tell all of `tenants` that it is enough where it is for each of them: each ends the observation it is in.

        Never where one is of several ranks: an observation more on some of them would hang their collectives.
        """
        if self._told or any(tenant.several for tenant in tenants):
            return
        if not (self._is_spent(tenants, now_ns) or all(map(self._is_narrow, tenants))):
            return
        self._told = True
        for rank in (rank for tenant in tenants for rank in tenant.ranks.values() if not rank.done):
            rank.enough = True
            rank.link.say("enough")

    def _is_spent(self, tenants: Collection[Tenant], now_ns: int) -> bool:
        if self._spent_ns is None or now_ns < self._spent_ns:
            return False
        return all(self._kept(tenant) >= LEAST_KEPT for tenant in tenants)

    def _is_narrow(self, tenant: Tenant) -> bool:
        if self._share is None:
            return False
        kept = self._kept(tenant)
        if kept >= self._due.get(tenant.index, 1):
            self._due[tenant.index] = kept + 1 + kept // LOOKS
            (rank,) = tenant.ranks.values()
            seen = rank.observations[self._skip :]
            rates = sorted(one["items"] * 1e9 / (one["end_ns"] - one["start_ns"]) for one in seen)
            width = relative_half_width(rates)
            self._narrow[tenant.index] = width is not None and width <= self._share
        return self._narrow.get(tenant.index, False)

    def _kept(self, tenant: Tenant) -> int:
        (rank,) = tenant.ranks.values()
        return len(rank.observations) - self._skip
