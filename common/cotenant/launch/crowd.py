"""Crowds: launches in whose blocks the first two, four or more of the users run beside each other. Pure."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import ClassVar

from cotenant.launch.schedule import ALL, HOME, ONLY, WARM_UP_ROUNDS, Passed, Schedule, Turn, cycles, places
from cotenant.results.record import Observed
from cotenant.stats.crowd_search import CrowdSearch, SteadyCrowd
from cotenant.stats.kept import BlockSum, block_sums, round_logs

Searcher = CrowdSearch | SteadyCrowd
"""Decides how many users run beside each other in each round."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """A launch on `slices` slices whose rounds a searcher chooses.

    A user's value is the logarithm of the share that it keeps of its rate alone or, with `of_rates`, of its rate.
    """

    searcher: Searcher
    slices: int
    of_rates: bool = False


@dataclass(frozen=True, slots=True)
class CrowdSchedule(Schedule):
    """In each round the first tenants, as many as `crowds` says, run beside each other, and each of them runs alone
    once, with blocks beside the others before and after it.

    `steps_ns` are the steps of tenants alone; several tenants in a slice share its time.
    """

    is_parted: ClassVar[bool] = True
    crowds: tuple[int, ...]
    slices: int
    budget_ns: int

    @property
    def total_ns(self) -> int:
        return sum(block.lasting_ns for block in self.blocks(random.Random(0)))

    @property
    def awake_ns(self) -> int:
        return self.budget_ns

    def timed(self, seen_ns: Mapping[int, Sequence[float]], most_ns: int) -> CrowdSchedule:
        """Return the schedule by the steps that tenants made alone: those of other slices warm up beside them.

        A tenant that was not alone yet is taken to be as fast as the first one.
        """
        timed = {tenant: round(median(seen)) for tenant, seen in seen_ns.items() if seen}
        first = min(self.steps_ns)
        usual = {tenant: timed.get(first, step_ns) for tenant, step_ns in self.steps_ns.items()}
        return replace(self, steps_ns=usual | timed)

    def with_crowd(self, users: int) -> CrowdSchedule | None:
        """Return the schedule with one round of `users` more; None if that would exceed the budget."""
        longer = replace(self, crowds=(*self.crowds, users), rounds=len(self.crowds) + 1)
        return longer if longer.total_ns <= self.budget_ns else None

    def _first(self) -> Sequence[Turn]:
        # The last one may run a different job from the first.
        alone = sorted({min(self.steps_ns), max(self.steps_ns)})
        return [(ALL, self.everybody), *((ONLY, {tenant: HOME}) for tenant in alone)]

    def _last(self) -> Sequence[Turn]:
        return []

    def _round(self, number: int, chance: random.Random) -> Sequence[Turn]:
        if number < WARM_UP_ROUNDS:
            return []
        there = dict.fromkeys(sorted(self.steps_ns)[: self.crowds[number - WARM_UP_ROUNDS]], HOME)
        return [*cycles(there, chance), (ALL, there)]

    def _step_ns(self, awake: Collection[int]) -> int:
        in_turns = math.ceil(len(awake) / self.slices)
        return in_turns * max(self.steps_ns[tenant] for tenant in awake)


def opening_of(tenants: int) -> int:
    """Return the number of blocks that only time steps: one of all tenants, then the first and the last one alone."""
    return 1 + min(2, tenants)


def blocks_in_a_round(users: int) -> int:
    """Return the number of blocks in a round of so many users, its closing one included."""
    return len(cycles(dict.fromkeys(range(users), HOME), random.Random(0))) + 1


def values_of(
    crowd: Crowd, schedule: CrowdSchedule, passed: Sequence[Passed], rows: Mapping[int, Sequence[Observed]]
) -> dict[int, float]:
    """Return the value of each user in the last round that has passed, without its closing block, if the user has one.

    `rows` are the observations of each tenant, in order of time.
    """
    users = schedule.crowds[-1]
    # The block before the round tells which tenants were thawed in its first.
    last = passed[-blocks_in_a_round(users) :]
    members = sorted(schedule.steps_ns)[:users]
    values = {}
    for tenant in members:
        sums = _sums(rows[tenant], last, tenant, schedule, members)
        together = [block for block in sums if not block.alone]
        logs = [*round_logs(sums)]
        if crowd.of_rates and together:
            values[tenant] = math.log(sum(of.items for of in together) / sum(of.seconds for of in together))
        elif logs and not crowd.of_rates:
            values[tenant] = logs[-1]
    return values


def _sums(
    rows: Sequence[Observed],
    passed: Sequence[Passed],
    tenant: int,
    schedule: CrowdSchedule,
    members: Sequence[int],
) -> list[BlockSum]:
    of_round = [*itertools.takewhile(lambda row: row.start_ns >= passed[0].start_ns, reversed(rows))][::-1]
    found = places([(row.start_ns, row.end_ns) for row in of_round], passed, tenant, schedule, members)
    return block_sums(
        (place.block or 0, place.kind == ONLY, row.items or 0.0, row.took_ns)
        for place, row in zip(found, of_round, strict=True)
        if place.kept and row.items
    )
