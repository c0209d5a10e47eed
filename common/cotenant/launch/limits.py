"""The limits of a launch: how long it may take, how much it measures, and how much full memory ends."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from cotenant.choices import READY_LIMIT_S, TIMEOUT_S
from cotenant.launch.rendezvous import Rank
from cotenant.launch.tenant import Deadline, Reason, Tenant
from cotenant.protocol.messages import UNSAID, ProtocolError
from cotenant.stats.budget import Amount, fastest_ns, lasting, shortened, slowest_ns, within

STOP_LIMIT_S = 60.0
ASKED_LIMIT_S = 10.0
"""Time for a program that was not written for a runner to notice STOP, and then to end after SIGTERM."""
UNSAID_OBSERVATION_NS = 200_000_000
"""About as long lasts an observation whose length nobody says."""
GRACE_S = 5.0
RANKS_GRACE_S = 2.0
"""The other ranks wait for the one that failed: nothing is lost when they are not waited for."""

OnOom = Literal["group", "process"]
"""The scope of a kill for memory: where the kernel kills one process, the whole tenant ends, or that process alone."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that the command line sets for every launch alike.

    `timeout_s`: seconds that all of it may take; `timeout_by` names the flag or job that set it. `ready_limit_s`:
    seconds until GO. `budget_s`: seconds that the observations of a launch may take, where an interval needs no more.
    `until_interval`: they end once half the width of the median's interval is at most this share of the median, for
    every tenant. `settle_s`: unmeasured load before the first observation. `at_least_s`: there are as many observations
    as it takes for the kept ones to last so long; `at_most_s`: only so many, where an interval needs no more.
    """

    timeout_s: float = TIMEOUT_S
    timeout_by: str = "--timeout"
    ready_limit_s: float = READY_LIMIT_S
    budget_s: float | None = None
    until_interval: float | None = None
    settle_s: float = 0.0
    at_least_s: float = 0.0
    at_most_s: float | None = None
    on_oom: OnOom = "group"

    def of_job(self, timeout_s: float | None) -> Limits:
        """Return the limits of a launch of a job, which may have a timeout of its own."""
        if timeout_s is None:
            return self
        return dataclasses.replace(self, timeout_s=timeout_s, timeout_by="'timeout' in the job file")

    def policies(self) -> dict[str, str | float]:
        """Return the part that a record names: it decides how much is measured and kept."""
        named = {
            "on_oom": self.on_oom,
            "budget_s": self.budget_s,
            "until_interval": self.until_interval,
            "settle_s": self.settle_s or None,
            "at_least_s": self.at_least_s or None,
            "at_most_s": self.at_most_s,
        }
        return {name: value for name, value in named.items() if value is not None}

    def given(self, ranks: Collection[Rank]) -> Amount:
        """Return how much ranks of equal work are to measure: the same for each, under a budget never more than they
        request.

        Where none of them has timed its warm-up, no budget can be kept. Raises ProtocolError where they disagree.
        """
        requested = {rank.requested for rank in ranks if rank.requested is not None}
        if len(requested) != 1:
            amounts = sorted(map(dataclasses.astuple, requested))
            raise ProtocolError(f"Users disagree on number, repeat and skip: {amounts}.")
        warm_ups_ns = [rank.ready["warm_up_ns"] for rank in ranks if rank.ready is not None]
        (amount,), batch_ns = requested, slowest_ns(warm_ups_ns)
        if amount.number == UNSAID:
            amount = dataclasses.replace(amount, number=max(1, UNSAID_OBSERVATION_NS // (batch_ns or 1)))
        if self.at_most_s is not None:
            amount = shortened(amount, batch_ns, round(self.at_most_s * 1e9))
        if self.budget_s is not None and batch_ns is not None:
            amount = within(amount, batch_ns, round(self.budget_s * 1e9))
        return lasting(amount, fastest_ns(warm_ups_ns), round(self.at_least_s * 1e9))


USUAL_LIMITS = Limits()


def late(
    tenants: Sequence[Tenant], limits: Limits, elapsed_s: float, loaded: bool, awaited: str = ""
) -> tuple[list[Tenant], Reason | None]:
    """Return who keeps a launch beyond its limits, and the reason of their end. `loaded`: between GO and STOP.

    Where nobody here does, it is the nodes that are `awaited`, and all here end.
    """
    behind = [tenant for tenant in tenants if not tenant.all_ranks("done" if loaded else "ready")]
    who = "It" if behind or not awaited else awaited
    ending = behind or (list(tenants) if awaited else [])
    if elapsed_s >= limits.timeout_s:
        # Those that are not behind end as their neighbours' deaths have it: aborted before GO, kept after it.
        longer = f"{who} was not finished after {limits.timeout_s:g} s. Give it longer with {limits.timeout_by}."
        return ending, ("timeout", longer)
    if not loaded and elapsed_s >= limits.ready_limit_s:
        longer = f"{who} was not ready within {limits.ready_limit_s:g} s. Give it longer with --ready-timeout."
        return ending, ("timeout", longer)
    return [], None


def after_stop(tenant: Tenant, number: int) -> Deadline:
    """Return until when a tenant that steps through `number` batches an observation may write its record."""
    # It may be in the midst of a batch, and of its last one after that.
    limit_s = STOP_LIMIT_S + 3 * max(rank.longest_batch_s(number) for rank in tenant.ranks.values())
    return time.monotonic() + limit_s, ("timeout", f"It did not end within {limit_s:.0f} s after STOP.")


def grace(tenant: Tenant, reason: Reason) -> Deadline:
    """Return until when the rest of a failed tenant may end by itself; an earlier deadline is never put off."""
    until_s = time.monotonic() + (RANKS_GRACE_S if tenant.several else GRACE_S)
    return until_s if tenant.deadline is None else min(until_s, tenant.deadline[0]), reason
