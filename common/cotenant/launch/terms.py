"""The terms of a launch: how long it may take, how much it measures, and what full memory ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from cotenant.launch.rank import Rank
from cotenant.stats.budget import Amount, slowest_ns, within

TIMEOUT_S = 3600.0
READY_LIMIT_S = 600.0

OnOom = Literal["group", "process"]
"""What ends when the kernel kills one process of a tenant for memory: all of it, or that process alone."""


class DisagreementError(ValueError):
    """The processes of a launch ask for different amounts of work."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What the command line says of every launch alike.

    `timeout_s`: seconds that all of it may take; `timeout_by` is who says so. `ready_limit_s`: seconds until GO.
    `budget_s`: seconds that the observations of a launch may take. `until_interval`: they end once half the width of
    the median's interval is at most this share of the median, for every tenant.
    """

    timeout_s: float = TIMEOUT_S
    timeout_by: str = "--timeout"
    ready_limit_s: float = READY_LIMIT_S
    budget_s: float | None = None
    until_interval: float | None = None
    on_oom: OnOom = "group"

    def of_job(self, timeout_s: float | None) -> Terms:
        """Return the terms of a launch of a job, which may give a timeout of its own."""
        if timeout_s is None:
            return self
        return dataclasses.replace(self, timeout_s=timeout_s, timeout_by="'timeout' in the job file")

    def policies(self) -> dict[str, str | float]:
        """Return what of this a record names: it decides how much is measured, and of what is left."""
        named = {"on_oom": self.on_oom, "budget_s": self.budget_s, "until_interval": self.until_interval}
        return {name: value for name, value in named.items() if value is not None}

    def given(self, ranks: Collection[Rank]) -> Amount:
        """Return how much the ranks of a launch are to measure of what they ask for: the same for each, and never more.

        Where none of them has said how long its warm-up took, no budget can be kept. Raises DisagreementError.
        """
        asked = {rank.asked for rank in ranks if rank.asked is not None}
        if len(asked) != 1:
            amounts = sorted(map(dataclasses.astuple, asked))
            raise DisagreementError(f"Tenants disagree on number, repeat and skip: {amounts}.")
        batch_ns = slowest_ns(rank.ready["warm_up_ns"] for rank in ranks if rank.ready is not None)
        if self.budget_s is None or batch_ns is None:
            return asked.pop()
        return within(asked.pop(), batch_ns, round(self.budget_s * 1e9))


USUAL_TERMS = Terms()
