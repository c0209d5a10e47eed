"""How a launch ended: the immutable result of all that happened in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cotenant.isolation.backend import Counters, ReadBack
from cotenant.launch.memory import HostKills
from cotenant.launch.rank import Rank
from cotenant.launch.tenant import Order, Tenant
from cotenant.launch.watch import outcome_of
from cotenant.stats.budget import Amount


@dataclass(frozen=True, slots=True)
class Ending:
    """How one tenant ended: its order, outcome, what its ranks said, and what the kernel counted."""

    order: Order
    outcome: str
    message: str
    ranks: dict[int, Rank] = field(default_factory=dict)
    read_back: ReadBack = field(default_factory=ReadBack)
    before: Counters = field(default_factory=Counters)
    after: Counters = field(default_factory=Counters)


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """All endings, in the tenants' order, and what they share; `given` by GO, None where there was none.

    `left_behind` says what could not be removed after the last of them; empty as a rule.
    """

    endings: tuple[Ending, ...]
    started: datetime
    ended: datetime
    t0_ns: int
    meters: dict[str, Any]
    given: Amount | None = None
    left_behind: str = ""


def ending_of(tenant: Tenant, host: HostKills) -> Ending:
    """Return the ending of a tenant that has ended."""
    outcome, message = outcome_of(tenant, host)
    return Ending(tenant.order, outcome, message, tenant.ranks, tenant.read_back, tenant.before, tenant.after)


def not_isolated(orders: Iterable[Order], culprit: Order, message: str) -> tuple[Ending, ...]:
    """Return the endings of a launch of which the slice of `culprit` could not be had: nothing was started."""
    aborted = f"Tenant {culprit.slice.tenant} could not be isolated: {message}"
    return tuple(
        Ending(order, "not_isolated", f"{message}.") if order is culprit else Ending(order, "aborted", aborted)
        for order in orders
    )
