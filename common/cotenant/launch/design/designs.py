"""The designs: all at once, by blocks, in pairs, as a duet, in crowds. A new one is a class like these."""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from cotenant.isolation.slice import Slice
from cotenant.launch.design.passed import ALL, HOME, ONLY, TURN, Passed, SeenSoFar
from cotenant.launch.design.shared import (
    BUDGET_NS,
    WARM_UP_ROUNDS,
    Design,
    DesignPlan,
    DuetPlace,
    Room,
    Round,
    Rounds,
    Tempo,
    Turn,
    cycles,
    rounds_within,
    too_long,
)
from cotenant.stats.crowd_search import CrowdSearch, SteadyCrowd
from cotenant.stats.duet import DuetRatio, ratio_of
from cotenant.stats.kept import BlockSum, round_logs
from cotenant.suite.mixes import JOINED

WANTED_ROUNDS, LEAST_ROUNDS = 20, 8
PAIRED = 0.9
"""Share of a launch's remaining time, once steps are timed, that its pairs may take."""
DUET_BUDGET_NS, MOST_DUET_NS = 8_000_000_000, 60_000_000_000
"""The default time of a duet, and the time that it may take if the fewest rounds do not fit the default."""
LEAST_DUET_ROUNDS = 4
"""These suffice, as a duet's interval is computed over several launches."""
MOST_DUET_ROUNDS = 2000
"""Some forty minutes: a difference that needs more rounds is smaller than the noise between two launches."""
MOST_STRETCH = 1.5
TOO_LONG = 5
"""A side of a duet may have warmed up while others kept its processors busy: steps that leave no time for the fewest
rounds are assumed to be this many times shorter."""
Pair = tuple[int, int]
Searcher = CrowdSearch | SteadyCrowd
"""Decides how many users run beside each other in each round."""


@dataclass(frozen=True)
class AllAtOnce(Design):
    """All run beside each other all the time."""

    takes_turns: ClassVar[bool] = False
    refusal: str = ""

    def plan(self, room: Room) -> str:
        return self.refusal


ALL_AT_ONCE = AllAtOnce()


@dataclass(frozen=True)
class InBlocks(Design):
    """In each round every tenant is alone once, between turns of all; the last turn is of all."""

    def plan(self, room: Room) -> DesignPlan | str:
        round_ns = room.tempo.round_ns(cycles(room.everybody, random.Random(0)))
        last_ns = room.tempo.lasting_ns(Turn(ALL, room.everybody), {})
        budget_ns = room.budget_ns or self.usual_ns(len(room.steps_ns))
        rounds = rounds_within(budget_ns, round_ns, last_ns, LEAST_ROUNDS, WANTED_ROUNDS)
        if rounds is None:
            return too_long(room, LEAST_ROUNDS)
        expected_ns = (rounds + WARM_UP_ROUNDS) * round_ns + last_ns
        return DesignPlan(self._rounds(room, rounds), room.tempo, expected_ns, expected_ns)

    def _rounds(self, room: Room, rounds: int) -> Rounds:
        early = False
        for number in range(rounds + WARM_UP_ROUNDS):
            seen = yield Round(number, cycles(room.everybody, room.chance), room.tempo)
            early = number in range(LEAST_ROUNDS, rounds) and room.is_enough(seen)
            if early:
                break
        yield Round(number, [Turn(ALL, room.everybody)], room.tempo)
        return not early


@dataclass(frozen=True)
class InPairs(Design):
    """Two tenants meet at a time, on walks: `only a`, `a and b`, `only b`, `b and c`, `only c`, and so on.

    In each round every pair meets once, close to blocks of each of the two alone in the same slot: the tenant that goes
    on keeps its slot, and the next one gets the other. At random the next one runs alone before or after the meeting,
    so that it is thawed for either equally often.
    """

    has_parts: ClassVar[bool] = True
    failure: ClassVar[str] = "Pairs cannot take turns: {why}. --baseline whole launches each by itself."
    pairs: tuple[Pair, ...]
    slots: Sequence[Slice] = ()

    def usual_ns(self, tenants: int) -> int:
        return 2 * len(self.pairs) * BUDGET_NS

    def meetings(self, tenants: int, passed: Sequence[Passed] = ()) -> Sequence[tuple[int, ...]]:
        return self.pairs

    def name(self, launch: str, cells: Sequence[str]) -> str:
        return JOINED.join(cells)

    def plan(self, room: Room) -> DesignPlan | str:
        opening = self._opening(room)
        expected_ns = opening.lasting_ns + _least_ns(self.pairs, room.tempo)
        return DesignPlan(self._rounds(room, opening), room.tempo, expected_ns, len(room.steps_ns) * expected_ns)

    def _opening(self, room: Room) -> Round:
        # At GO all run: a tenant is frozen before it is moved. Then each runs alone, and its steps are timed.
        alone = (Turn(ONLY, {tenant: slot}) for tenant, slot in room.everybody.items())
        return Round(0, [Turn(ALL, room.everybody), *alone], room.tempo, counts=False)

    def _rounds(self, room: Room, opening: Round) -> Rounds:
        """Yield rounds planned by the steps of each tenant alone: it warmed up beside others in other slots.

        If the fewest rounds take more than the time left, the slowest tenants meet no other: they would cost the others
        their rounds.
        """
        seen = yield opening
        tempo, pairs = room.tempo.timed(seen), self.pairs
        most_ns = round(PAIRED * (room.left_ns - seen.lasted_ns))
        while pairs and (least_ns := _least_ns(pairs, tempo)) > most_ns:
            slowest = max(itertools.chain.from_iterable(pairs), key=tempo.steps_ns.__getitem__)
            pairs = tuple(pair for pair in pairs if slowest not in pair)
        if not pairs:
            return True
        budget_ns = room.budget_ns or self.usual_ns(len(room.steps_ns))
        round_ns = least_ns // (LEAST_ROUNDS + WARM_UP_ROUNDS)
        more = max(0, min(budget_ns, most_ns) - least_ns) // round_ns
        for number in range(min(WANTED_ROUNDS, LEAST_ROUNDS + more) + WARM_UP_ROUNDS):
            yield Round(number, walks(pairs, room.chance), tempo)
        return True


def _least_ns(pairs: Sequence[Pair], tempo: Tempo) -> int:
    """Return the nanoseconds of the fewest rounds of these pairs."""
    return (LEAST_ROUNDS + WARM_UP_ROUNDS) * tempo.round_ns(walks(pairs, random.Random(0)))


def walks(pairs: Sequence[Pair], chance: random.Random) -> list[Turn]:
    """Return the turns of a round in which each of these pairs meets once."""
    turns: list[Turn] = []
    for trail in trails(pairs, chance):
        slots = itertools.cycle(chance.sample((0, 1), 2))
        walk = [{tenant: slot} for tenant, slot in zip(trail, slots, strict=False)]
        turns.append(Turn(ONLY, walk[0]))
        for here, there in itertools.pairwise(walk):
            turns += chance.sample([Turn(ALL, here | there), Turn(ONLY, there)], 2)
    return turns


def trails(pairs: Sequence[Pair], chance: random.Random) -> Iterator[list[int]]:
    """Yield walks over tenants in which each pair is adjacent once, in a new random order.

    They are few: a walk begins at a tenant with an odd number of pairs left, while there are such tenants.
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


@dataclass(frozen=True)
class InDuet(Design):
    """Two consecutive tenants share a slice as A and B, and half of the tenants runs at a time.

    Each round is A B B A, so that drift cancels; each half is thawed for one block, and goes on into the other. A
    random factor of up to 1.5 stretches a round, so that no periodic work on the host meets the same half each time.
    """

    failure: ClassVar[str] = (
        "A duet takes turns, which cannot be had here: {why}. "
        "Give it a longer --budget, or smaller steps, of one process each."
    )

    def usual_ns(self, tenants: int) -> int:
        return DUET_BUDGET_NS

    def plan(self, room: Room) -> DesignPlan | str:
        first, second = (
            {tenant: HOME for tenant in room.everybody if self.place(tenant).half == half} for half in (0, 1)
        )
        turns = [Turn(TURN, half) for half in (first, second, second, first)]
        shorter = replace(room.tempo, steps_ns={tenant: ns // TOO_LONG for tenant, ns in room.steps_ns.items()})
        budgets_ns = [room.budget_ns] if room.budget_ns else [DUET_BUDGET_NS, MOST_DUET_NS]
        for tempo, budget_ns in itertools.product((room.tempo, shorter), budgets_ns):
            # At GO all tenants run.
            opening = Round(0, [Turn(ALL, room.everybody)], tempo, counts=False)
            round_ns = round((1 + MOST_STRETCH) / 2 * tempo.round_ns(turns))
            fitting = (budget_ns, round_ns, opening.lasting_ns, LEAST_DUET_ROUNDS, MOST_DUET_ROUNDS)
            if (rounds := rounds_within(*fitting)) is not None:
                expected_ns = opening.lasting_ns + (rounds + WARM_UP_ROUNDS) * round_ns
                made = self._rounds(room, opening, turns, rounds)
                return DesignPlan(made, tempo, expected_ns, TOO_LONG * expected_ns // 2)
        return too_long(room, LEAST_DUET_ROUNDS)

    def _rounds(self, room: Room, opening: Round, turns: Sequence[Turn], rounds: int) -> Rounds:
        yield opening
        for number in range(rounds + WARM_UP_ROUNDS):
            seen = yield Round(number, turns, opening.tempo, room.chance.uniform(1, MOST_STRETCH))
            if number in range(LEAST_ROUNDS, rounds) and room.is_enough(seen):
                return False
        return True

    def place(self, tenant: int) -> DuetPlace:
        return DuetPlace("B" if tenant % 2 else "A", tenant // 2)

    def are_beside(self, tenant: int, other: int) -> bool:
        return self.place(tenant).half == self.place(other).half

    def ratio(self, sums: Mapping[int, Sequence[BlockSum]], passed: Sequence[Passed]) -> DuetRatio | None:
        sides = [(sums[tenant], sums[tenant + 1]) for tenant in sorted(sums)[::2]]
        counted = [one for one in passed if one.block.counts]
        if not counted:
            return None
        rounds = {one.block.index: one.block.round for one in counted}
        lasted_ns = counted[-1].end_ns - counted[0].start_ns
        return ratio_of(sides, rounds, lasted_ns / 1e9 / len({*rounds.values()}))


@dataclass(frozen=True)
class InCrowds(Design):
    """In each round a searcher sets how many tenants, the first ones, run beside each other; each of them runs alone
    once, between turns of all of them.

    A user's value in a round is the logarithm of its retained rate (together over alone) or, with `of_rates`, of its
    rate.
    """

    has_parts: ClassVar[bool] = True
    failure: ClassVar[str] = "Users cannot take turns: {why}."
    searcher: Searcher
    slices: int
    of_rates: bool = False

    def meetings(self, tenants: int, passed: Sequence[Passed] = ()) -> Sequence[tuple[int, ...]]:
        met = dict.fromkeys(len(one.block.awake) for one in passed if one.block.counts and one.block.kind == ALL)
        return [tuple(range(users)) for users in met or [tenants]]

    def plan(self, room: Room) -> DesignPlan | str:
        budget_ns = room.budget_ns or self.usual_ns(len(room.steps_ns))
        tempo = replace(room.tempo, slices=self.slices)
        return DesignPlan(self._rounds(room, tempo, budget_ns), tempo, budget_ns, len(room.steps_ns) * budget_ns)

    def _rounds(self, room: Room, tempo: Tempo, budget_ns: int) -> Rounds:
        """Yield rounds planned by the steps of the first and the last tenant alone, which may run different jobs; the
        others are assumed to be as fast as the first."""
        everybody = [*room.everybody]
        alone = (Turn(ONLY, {tenant: HOME}) for tenant in dict.fromkeys((everybody[0], everybody[-1])))
        seen = yield Round(0, [Turn(ALL, room.everybody), *alone], tempo, counts=False)
        first_ns = seen.steps_alone_ns().get(everybody[0])
        tempo = tempo.timed(seen, None if first_ns is None else dict.fromkeys(everybody, first_ns))
        users = self.searcher.next_users() or len(everybody)
        for number in itertools.count(WARM_UP_ROUNDS):
            there = dict.fromkeys(everybody[:users], HOME)
            following = Round(number, [*cycles(there, room.chance), Turn(ALL, there)], tempo)
            if number > WARM_UP_ROUNDS and seen.lasted_ns + following.lasting_ns > budget_ns:
                break
            seen = yield following
            self.searcher.take(users, self._values(seen, everybody[:users], number))
            if (users := self.searcher.next_users() or 0) == 0:
                break
        return True

    def _values(self, seen: SeenSoFar, members: Sequence[int], number: int) -> dict[int, float]:
        """Return the value of each member in the round of this number, if it has one."""
        values = {}
        for tenant in members:
            sums = seen.sums(tenant, members, number)
            together = [block for block in sums if not block.alone]
            logs = [*round_logs(sums)]
            if self.of_rates and together:
                items, seconds = (
                    sum(column) for column in zip(*((one.items, one.seconds) for one in together), strict=True)
                )
                values[tenant] = math.log(items / seconds)
            elif logs and not self.of_rates:
                values[tenant] = logs[-1]
        return values
