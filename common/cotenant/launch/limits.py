"""The limits of a launch: its time, the amount that it measures, and the scope of a kill for memory."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Literal

from cotenant.choices import READY_LIMIT_S, TIMEOUT_S
from cotenant.launch.endings import Ending, Patience
from cotenant.launch.rank import Rank, RankPhase
from cotenant.launch.tenant import Tenant
from cotenant.launch.unready import unready
from cotenant.protocol.messages import UNSAID, ProtocolError
from cotenant.stats.budget import Amount, lasting, latest_ns, range_ns, within

STOP_LIMIT_S = 60.0
ASKED_LIMIT_S = 10.0
"""Seconds after STOP before a program that was not written for a runner gets SIGTERM, and again before it is killed."""
UNSAID_OBSERVATION_NS = 200_000_000
"""The approximate length of an observation if neither a flag nor the program gives a number of batches."""
NAMING_S = 15.0
"""Seconds beyond the limit, in which ranks of several nodes name the unready one before the runner ends all."""
GRACE_S = 5.0
RANKS_GRACE_S = 2.0
"""It is short, as the other ranks only wait for the failed one: no result is lost when they are killed."""

OnOom = Literal["group", "process"]
"""The scope of a kill for memory: the whole tenant ends (`group`), or only the process that the kernel killed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that the command line sets for all launches.

    `timeout_s`: the most seconds of a launch; `timeout_by` names the flag or job that set it. `ready_limit_s`: the most
    seconds until GO. `budget_s`: seconds for the observations of a launch, more if an interval needs them.
    `until_interval`: observations end once half the width of every tenant's interval of the median is at most this
    share of the median. `settle_s`: seconds of unmeasured load before the first observation. `at_least_s`: the least
    seconds of the kept observations.
    """

    timeout_s: float = TIMEOUT_S
    timeout_by: str = "--timeout"
    ready_limit_s: float = READY_LIMIT_S
    budget_s: float | None = None
    until_interval: float | None = None
    settle_s: float = 0.0
    at_least_s: float = 0.0
    on_oom: OnOom = "group"

    def of_job(self, timeout_s: float | None) -> Limits:
        """Return the limits of a launch of a job, which may have a timeout of its own."""
        if timeout_s is None:
            return self
        return replace(self, timeout_s=timeout_s, timeout_by="'timeout' in the job file")

    def of_node(self, follows: bool, wait_s: float) -> Limits:
        """Return the limits of a launch over several nodes, whose ranks know best which of them is not ready in time.

        A node that follows another may wait up to `wait_s` for it.
        """
        if follows:
            return replace(self, ready_limit_s=math.inf, timeout_s=self.timeout_s + wait_s)
        return replace(self, ready_limit_s=self.ready_limit_s + NAMING_S)

    def policies(self) -> dict[str, str | float]:
        """Return the limits that a record keeps: all except the time limits of a launch."""
        named = {
            "on_oom": self.on_oom,
            "budget_s": self.budget_s,
            "until_interval": self.until_interval,
            "settle_s": self.settle_s,
            "at_least_s": self.at_least_s,
        }
        return {name: value for name, value in named.items() if value}

    def given(self, ranks: Collection[Rank]) -> Amount:
        """Return the amount for each of these ranks of equal work; a budget never raises it above their request.

        If no rank has timed its warm-up, no budget can be kept. Raises ProtocolError if their requests differ.
        """
        requested = {rank.ready.amount for rank in ranks if rank.ready is not None}
        if len(requested) != 1:
            amounts = sorted(map(astuple, requested))
            raise ProtocolError(f"Users disagree on number, repeat and skip: {amounts}.")
        fastest_ns, batch_ns = range_ns(rank.ready.warm_up_ns for rank in ranks if rank.ready is not None)
        (amount,) = requested
        if amount.number == UNSAID:
            amount = replace(amount, number=max(1, UNSAID_OBSERVATION_NS // (batch_ns or 1)))
        if self.budget_s is not None and batch_ns is not None:
            amount = within(amount, batch_ns, round(self.budget_s * 1e9))
        return lasting(amount, fastest_ns, round(self.at_least_s * 1e9))

    def long_step(self, ranks: Collection[Rank]) -> str:
        """Return a warning about a step longer than the budget; "" without one."""
        _, batch_ns = range_ns(rank.ready.warm_up_ns for rank in ranks if rank.ready is not None)
        if self.budget_s is None or batch_ns is None or batch_ns <= (budget_ns := round(self.budget_s * 1e9)):
            return ""
        return (
            f"warning: A step takes {batch_ns / 1e9:.3g} s, and the budget is {self.budget_s:g} s: the launch ends "
            f"with the step after {latest_ns(budget_ns) / 1e9:g} s. Give a larger --budget, or a smaller batch."
        )


USUAL_LIMITS = Limits()


def late(tenants: Sequence[Tenant], limits: Limits, elapsed_s: float, loaded: bool) -> list[tuple[Tenant, Ending]]:
    """Return the tenants that exceed a launch's limits, each with its ending; `loaded` is true between GO and STOP."""
    awaited = RankPhase.DONE if loaded else RankPhase.READY
    behind = [tenant for tenant in tenants if not tenant.all_ranks(awaited)]
    if elapsed_s >= limits.timeout_s:
        # The other tenants end as after a neighbour's death: aborted before GO, with a kept result after it.
        longer = f"It was not finished after {limits.timeout_s:g} s. Give it longer with {limits.timeout_by}."
        return [(tenant, Ending("timeout", longer)) for tenant in behind]
    if not loaded and elapsed_s >= limits.ready_limit_s:
        return [(tenant, _unready_ending(tenant, limits.ready_limit_s)) for tenant in behind]
    return []


def _unready_ending(tenant: Tenant, limit_s: float) -> Ending:
    seen = f"{seen} Or give" if (seen := unready(tenant)) else "Give"
    return Ending("timeout", f"It was not ready within {limit_s:g} s. {seen} it longer with --ready-timeout.")


def after_stop(tenant: Tenant, number: int) -> Patience:
    """Return how long a tenant with `number` batches in an observation may take to send its record."""
    if tenant.spec.foreign is not None:
        return Patience(time.monotonic() + ASKED_LIMIT_S, None)
    # It may be in the middle of a batch, and may make one more.
    limit_s = STOP_LIMIT_S + 3 * max(rank.longest_batch_s(number) for rank in tenant.ranks.values())
    return Patience(time.monotonic() + limit_s, Ending("timeout", f"It did not end within {limit_s:.0f} s after STOP."))


def grace(tenant: Tenant, ending: Ending) -> Patience:
    """Return how long the rest of a failed tenant may take to end by itself; an earlier time stays."""
    until_s = time.monotonic() + (RANKS_GRACE_S if tenant.several else GRACE_S)
    return Patience(until_s if tenant.patience is None else min(until_s, tenant.patience.until_s), ending)
