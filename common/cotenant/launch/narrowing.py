"""Ends the observations of a launch when the interval of every tenant's median is narrow."""

from __future__ import annotations

from collections.abc import Collection

from cotenant.launch.tenant import Tenant
from cotenant.stats.median import relative_half_width

LOOKS = 20
"""After a look at n observations the next is due once a twentieth more has come in: a look takes the runner's time, and
every further one makes it more likely to find an interval that is narrow by chance."""


class Narrowing:
    """Looks at what tenants have observed until half of each interval is at most `share` of its median."""

    def __init__(self, share: float, skip: int) -> None:
        self._share = share
        self._skip = skip
        self._due: dict[int, int] = {}
        self._narrow: dict[int, bool] = {}
        self._told = False

    def look(self, tenants: Collection[Tenant]) -> None:
        """Tell all of `tenants` that it is enough where each interval is narrow: each ends the observation it is in.

        Never where one is of several ranks: an observation more on some of them would hang their collectives.
        """
        if self._told or any(tenant.several for tenant in tenants) or not all(map(self._is_narrow, tenants)):
            return
        self._told = True
        for rank in (rank for tenant in tenants for rank in tenant.ranks.values()):
            rank.enough = True
            rank.link.say("enough")

    def _is_narrow(self, tenant: Tenant) -> bool:
        (rank,) = tenant.ranks.values()
        kept = len(rank.observations) - self._skip
        if kept >= self._due.get(tenant.index, 1):
            self._due[tenant.index] = kept + 1 + kept // LOOKS
            seen = rank.observations[self._skip :]
            rates = sorted(one["items"] * 1e9 / (one["end_ns"] - one["start_ns"]) for one in seen)
            width = relative_half_width(rates)
            self._narrow[tenant.index] = width is not None and width <= self._share
        return self._narrow.get(tenant.index, False)
