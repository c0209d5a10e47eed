"""Pairs of many jobs in one launch: the groups of jobs that fit at once, and the order in which pairs meet. Pure."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import ClassVar

from cotenant.isolation.slice import Slice
from cotenant.launch.schedule import ALL, BUDGET_NS, HOME, ONLY, WARM_UP_ROUNDS, Schedule, Turn, within

Pair = tuple[int, int]
PAIR_S = 2 * BUDGET_NS / 1e9
"""Seconds for which a pair is measured, by default."""
PART_OF_TIMEOUT = 0.5
"""Share of a launch's time limit that its pairs may take: their fewest rounds may take longer than a budget."""
USUAL_BYTES = 3 << 29
"""Assumed memory of a job whose memory is unknown: 1.5 GiB, four times an import of torch."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """The pairs of a launch's tenants that meet, and the `slots`, two slices that all pairs use in turn."""

    pairs: tuple[Pair, ...]
    slots: tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class PairSchedule(Schedule):
    """Two tenants meet at a time, on walks: `only a`, `a and b`, `only b`, `b and c`, `only c`, and so on.

    In each round every pair meets once, close to blocks of each of the two alone in the same slot: the tenant that goes
    on keeps its slot, and the next one gets the other. By chance the next one runs alone before or after the meeting,
    so that it is thawed for either equally often.
    """

    is_parted: ClassVar[bool] = True
    pairs: tuple[Pair, ...]
    budget_ns: int = 0
    """The time for its rounds; there are never fewer than the least number."""

    def timed(self, seen_ns: Mapping[int, Sequence[float]], most_ns: int) -> PairSchedule:
        """Return the schedule by the timed steps of each tenant alone, with as many rounds as fit its budget.

        Before GO tenants warm up by turns in a slice, but beside those of the other slice, which may slow steps. One so
        slow that the fewest rounds take more than `most_ns` meets no other: it would cost the others their rounds.
        """
        steps_ns = {**self.steps_ns, **{tenant: round(median(seen)) for tenant, seen in seen_ns.items() if seen}}
        least = replace(self, steps_ns=steps_ns)
        while least.pairs and (least.rounds + WARM_UP_ROUNDS) * least.round_ns > most_ns:
            slowest = max(itertools.chain.from_iterable(least.pairs), key=steps_ns.__getitem__)
            least = replace(least, pairs=tuple(pair for pair in least.pairs if slowest not in pair))
        if not least.pairs:
            return least
        return within(least, min(max(self.budget_ns, least.total_ns), most_ns)) or least

    def _round(self, number: int, chance: random.Random) -> Sequence[Turn]:
        turns: list[Turn] = []
        for trail in trails(self.pairs, chance):
            slots = itertools.cycle(chance.sample((0, 1), 2))
            walk = [{tenant: slot} for tenant, slot in zip(trail, slots, strict=False)]
            turns.append((ONLY, walk[0]))
            for here, there in itertools.pairwise(walk):
                turns += chance.sample([(ALL, here | there), (ONLY, there)], 2)
        return turns

    def _first(self) -> Sequence[Turn]:
        # At GO all run, and a tenant is frozen before it is moved. Then the steps of each alone are timed.
        return [(ALL, self.everybody), *((ONLY, {tenant: HOME}) for tenant in sorted(self.steps_ns))]

    def _last(self) -> Sequence[Turn]:
        return []


def trails(pairs: Sequence[Pair], chance: random.Random) -> Iterator[list[int]]:
    """Yield walks over tenants in which each pair is once next to each other, in a new random order.

    There are few: a walk begins at a tenant with an odd number of pairs left, while there are such tenants.
    """
    left: dict[int, list[int]] = defaultdict(list)
    for first, second in pairs:
        left[first].append(second)
        left[second].append(first)
    while beginnings := [tenant for tenant, others in left.items() if others]:
        trail = [chance.choice([tenant for tenant in beginnings if len(left[tenant]) % 2] or beginnings)]
        while others := left[trail[-1]]:
            following = others.pop(chance.randrange(len(others)))
            left[following].remove(trail[-1])
            trail.append(following)
        yield trail


def groups_of(
    pairs: Sequence[Pair], needs: Sequence[int], room: int, most: int | None = None
) -> list[tuple[Pair, ...]]:
    """Return the pairs in groups, whose tenants fit into `room` bytes together; tenant `i` takes `needs[i]` bytes.

    Every pair is in one group, and no group has more than `most` pairs, for which a launch has time. A pair that does
    not fit is a group of its own, as it would be a launch of its own. A group grows by the tenant that brings most
    pairs for its bytes.
    """
    left, groups = list(dict.fromkeys(pairs)), []
    while left:
        there = {*min(left, key=lambda pair: needs[pair[0]] + needs[pair[1]])}
        while candidates := _candidates(left, there, needs, room):
            there.add(max(candidates, key=lambda tenant: (candidates[tenant] / max(1, needs[tenant]), -tenant)))
        group = tuple(pair for pair in left if there.issuperset(pair))[:most]
        left = [pair for pair in left if pair not in group]
        groups.append(group)
    return groups


def _candidates(left: Sequence[Pair], there: set[int], needs: Sequence[int], room: int) -> dict[int, int]:
    """Return each tenant that still fits and the number of pairs it brings; 0 may become more with the next tenant."""
    free = room - sum(needs[tenant] for tenant in there)
    fitting = {tenant for pair in left for tenant in pair if tenant not in there and needs[tenant] <= free}
    return {tenant: sum(tenant in pair and not there.isdisjoint(pair) for pair in left) for tenant in fitting}
