"""One launch as a schedule of blocks: in each some tenants run, and the kernel holds the others still.

Blocks of `all` alternate with blocks in which one tenant is awake, so that what a tenant does alone is compared with
what it does beside the others just before and just after. Where pairs of many tenants meet, each walks on by turns:
`only a`, `a and b`, `only b`, `b and c`, `only c`, so that both of a pair are alone beside it, each on the slice that
it has in it. Everything here is pure: who freezes and thaws is the conductor.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cotenant.launch.pairing import Pair, trails

WANTED_ROUNDS, LEAST_ROUNDS = 20, 8
WARM_UP_ROUNDS = 1
MEASURED_NS = 200_000_000
STEPS_IN_A_BLOCK = 10
OBSERVATIONS_IN_A_BLOCK = 10
AFTER_THAW_NS, AFTER_BORDER_NS, AFTER_THAW_ON_DEVICES_NS = 150_000_000, 50_000_000, 300_000_000
"""What is left out behind a border: of who was thawed (the first 20 ms run 5 to 15 % slow), of who went on, and on
devices, where the queue of who was frozen still runs."""
BUDGET_NS = 7_500_000_000
"""A launch's time for each of its tenants, where nobody says another."""
LATEST_NS = 1_000_000_000
"""A block that lasted so much longer than planned was disturbed: the runner was stopped, or starved."""


HOME = -1
"""The slice that a tenant was planned for; others are the slots of a pair."""
Turn = tuple[Mapping[int, int], bool]
"""Who runs, and where; and whether any of them rested before."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a launch in which those run that are `awake`, each with where. Round 0 is the warm-up."""

    index: int
    round: int
    awake: Mapping[int, int]
    lasting_ns: int


@dataclass(frozen=True, slots=True)
class Passed:
    """A block as it was: from the moment its last tenant was thawed to the moment before the next was frozen.

    Nothing that was observed in a `void` one is kept.
    """

    block: Block
    start_ns: int
    end_ns: int
    void: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where an observation lies: in the block `index`, which is of all tenants or of this `only`; nowhere across a
    border."""

    block: int | None
    kind: str
    kept: bool


NOWHERE = Place(None, "", False)
ALL, ONLY = "all", "only"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The rounds of a launch; `steps_ns` is what a step takes, by tenant, and `rounds` those behind the warm-up.

    Of `pairs` two meet at a time; without any all are beside each other.
    """

    steps_ns: Mapping[int, int]
    on_devices: bool
    rounds: int
    pairs: tuple[Pair, ...] = ()

    @property
    def round_ns(self) -> int:
        """How long a round takes; of pairs about as long, as each is drawn anew."""
        return sum(self._lasting_ns(*turn) for turn in self._round(random.Random(0)))

    @property
    def total_ns(self) -> int:
        """How long all rounds take, the warm-up and the last block of all included."""
        return (self.rounds + WARM_UP_ROUNDS) * self.round_ns + self._lasting_ns(*self._all)

    def blocks(self, chance: random.Random) -> Iterator[Block]:
        """Yield the blocks: in each round every tenant alone once, in an order drawn anew, all of them between any two.

        The last one is of all: no turn is without one behind it. Nobody rests for longer than one block. Of pairs the
        first one is of all, as is what precedes it: nobody is to be moved before it was frozen.
        """
        rounds = range(self.rounds + WARM_UP_ROUNDS)
        turns = [(number, turn) for number in rounds for turn in self._round(chance)]
        turns = [(0, self._all), *turns] if self.pairs else [*turns, (self.rounds, self._all)]
        for index, (number, (awake, thawed)) in enumerate(turns):
            yield Block(index, number, awake, self._lasting_ns(awake, thawed))

    def number(self, tenants: Sequence[int], requested: int) -> int:
        """Return how many steps make an observation of these tenants, so that enough of them lie in a block."""
        step_ns = max(self.steps_ns[tenant] for tenant in tenants)
        return max(1, min(requested, MEASURED_NS // (OBSERVATIONS_IN_A_BLOCK * step_ns)))

    def left_out_ns(self, tenant: int, thawed: bool) -> int:
        """Return how long after a border a tenant's observations do not count."""
        if not thawed:
            return AFTER_BORDER_NS
        return (AFTER_THAW_ON_DEVICES_NS if self.on_devices else AFTER_THAW_NS) + self.steps_ns[tenant]

    @property
    def _all(self) -> Turn:
        return dict.fromkeys(sorted(self.steps_ns), HOME), True

    def _round(self, chance: random.Random) -> Iterator[Turn]:
        if not self.pairs:
            for tenant in chance.sample(sorted(self.steps_ns), len(self.steps_ns)):
                yield self._all
                yield {tenant: HOME}, False
        for trail in trails(self.pairs, chance):
            slots = itertools.cycle(chance.sample((0, 1), 2))
            before: dict[int, int] = {}
            for here in ({tenant: next(slots)} for tenant in trail):
                if before:
                    yield before | here, True
                yield here, not before
                before = here

    def _lasting_ns(self, awake: Mapping[int, int], thawed: bool) -> int:
        """Return the length of a block: its longest leave-out, and then what is measured."""
        left_out_ns = max(self.left_out_ns(tenant, thawed) for tenant in awake)
        return left_out_ns + max(MEASURED_NS, STEPS_IN_A_BLOCK * max(self.steps_ns[tenant] for tenant in awake))


def schedule_within(
    steps_ns: Mapping[int, int], on_devices: bool, budget_ns: int, pairs: tuple[Pair, ...] = ()
) -> Schedule | None:
    """Return the schedule of as many rounds as fit a budget, LEAST_ROUNDS at least; None where these take twice as
    long."""
    least = Schedule(steps_ns, on_devices, LEAST_ROUNDS, pairs)
    if least.total_ns > 2 * budget_ns:
        return None
    more = (budget_ns - least.total_ns) // least.round_ns
    return Schedule(steps_ns, on_devices, min(WANTED_ROUNDS, LEAST_ROUNDS + max(0, more)), pairs)


def is_late(block: Block, lasted_ns: int) -> bool:
    """Whether a block lasted so much longer than planned that nobody knows who ran in it."""
    return lasted_ns > block.lasting_ns + LATEST_NS


def places(
    spans: Sequence[tuple[int, int]],
    passed: Sequence[Passed],
    tenant: int,
    schedule: Schedule,
    members: Collection[int] = (),
) -> list[Place]:
    """Return where each observation of a tenant lies, in the order of time: `spans` are their first and last moment.

    Those wholly behind a block's leave-out and before its end are kept; of the warm-up's round and of void blocks none.
    `members` are those whose meeting counts, by default all: no other block of theirs is a place but those of one of
    them beside it.
    """
    windows = list(_windows(passed, tenant, schedule, {*members} or schedule.steps_ns.keys()))
    found: list[Place] = []
    at = 0
    for start_ns, end_ns in spans:
        while at < len(windows) and windows[at][0].end_ns < end_ns:
            at += 1
        one, from_ns = windows[at] if at < len(windows) else (None, 0)
        if one is None or start_ns < one.start_ns:
            found.append(NOWHERE)
            continue
        kept = start_ns >= from_ns and one.block.round >= WARM_UP_ROUNDS and not one.void
        found.append(Place(one.block.index, ALL if len(one.block.awake) > 1 else ONLY, kept))
    return found


def _windows(
    passed: Sequence[Passed], tenant: int, schedule: Schedule, members: Collection[int]
) -> Iterator[tuple[Passed, int]]:
    """Yield the blocks that count in which a tenant ran, with the moment from which its observations do."""
    met = [one.block.awake.keys() == {*members} for one in passed]
    beside = [any(met[max(0, at - 1) : at + 2]) for at in range(len(met))]
    before: Mapping[int, int] = dict.fromkeys(schedule.steps_ns, HOME)
    for at, one in enumerate(passed):
        awake = one.block.awake
        if tenant in awake and (met[at] or (beside[at] and len(awake) == 1)):
            thawed = before.get(tenant) != awake[tenant]
            yield one, one.start_ns + schedule.left_out_ns(tenant, thawed)
        before = awake
