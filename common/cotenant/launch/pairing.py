"""Pairs of many jobs in one launch: which jobs are there at once, and in which order their pairs meet. Pure."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from cotenant.isolation.slice import Slice
from cotenant.launch.schedule import ALL, BUDGET_NS, HOME, ONLY, WARM_UP_ROUNDS, Schedule, Turn, within

Pair = tuple[int, int]
PAIR_S = 2 * BUDGET_NS / 1e9
"""Time that a pair is measured, where nobody says another budget."""
PART_OF_TIMEOUT = 0.5
"""Share of a launch's time limit that its pairs may have: their least rounds may take longer than a budget."""
USUAL_BYTES = 3 << 29
"""Memory of a job whose memory nobody knows: 1.5 GiB, four times an import of torch."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """The pairs of a launch's tenants that meet, and the `slots`, a pair's two slices, which they have by turns."""

    pairs: tuple[Pair, ...]
    slots: tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class PairSchedule(Schedule):
    """Two tenants meet at a time, on walks: `only a`, `a and b`, `only b`, `b and c`, `only c`, and so on.

    In each round every pair meets once, near both of it alone, each of them on the slot that it has beside the other:
    who goes on stays where it is, and who comes has the other slot. By chance it comes alone first: so it is thawed for
    its turns alone as often as for its meetings.
    """

    pairs: tuple[Pair, ...]
    budget_ns: int = 0
    """The time of its rounds, which are the least where that is too short."""

    @property
    def is_parted(self) -> bool:
        return True

    def timed(self, seen_ns: Mapping[int, Sequence[float]], most_ns: int) -> PairSchedule:
        """Return the schedule by the steps of each tenant that were seen, of as many rounds as fit its budget.

        Before GO all warm up at once, on the slices of two, so that their steps took several times as long. Who is so
        slow that the least rounds take more than `most_ns` meets nobody: it would cost the others their rounds.
        """
        steps_ns = {**self.steps_ns, **{tenant: round(median(seen)) for tenant, seen in seen_ns.items() if seen}}
        least = replace(self, steps_ns=steps_ns)
        while least.pairs and (least.rounds + WARM_UP_ROUNDS) * least.round_ns > most_ns:
            slowest = max(itertools.chain.from_iterable(least.pairs), key=steps_ns.__getitem__)
            least = replace(least, pairs=tuple(pair for pair in least.pairs if slowest not in pair))
        if not least.pairs:
            return least
        return within(least, min(max(self.budget_ns, least.total_ns), most_ns)) or least

    def _turns(self, chance: random.Random) -> Sequence[Turn]:
        turns: list[Turn] = []
        for trail in trails(self.pairs, chance):
            slots = itertools.cycle(chance.sample((0, 1), 2))
            walk = [{tenant: slot} for tenant, slot in zip(trail, slots, strict=False)]
            turns.append((ONLY, walk[0]))
            for here, there in itertools.pairwise(walk):
                turns += chance.sample([(ALL, here | there), (ONLY, there)], 2)
        return turns

    def _first(self) -> Sequence[Turn]:
        # At GO everybody runs, and nobody is moved before it was frozen. Of each alone its steps are timed.
        return [(ALL, self.everybody), *((ONLY, {tenant: HOME}) for tenant in sorted(self.steps_ns))]

    def _last(self) -> Sequence[Turn]:
        return []


def trails(pairs: Sequence[Pair], chance: random.Random) -> Iterator[list[int]]:
    """Yield walks over tenants in which each of the pairs meets once, as neighbours, in an order drawn anew.

    They are few: one begins where an odd number of pairs is left, as long as there are such tenants.
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
    """Return the pairs in groups: the tenants of each fit `room` together, by what each of them `needs`.

    No group has more than the `most` pairs that a launch has time for. Every pair is in one group. A pair that does not
    fit is a group by itself, as it would be a launch by itself. A group grows by the tenant that brings most pairs for
    what it needs.
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
    """Return who still fits, with how many pairs it would bring; who brings none alone may with the next."""
    free = room - sum(needs[tenant] for tenant in there)
    fitting = {tenant for pair in left for tenant in pair if tenant not in there and needs[tenant] <= free}
    return {tenant: sum(tenant in pair and not there.isdisjoint(pair) for pair in left) for tenant in fitting}
