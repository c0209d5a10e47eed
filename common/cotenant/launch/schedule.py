"""One launch as a schedule of blocks: in each some tenants run, and the kernel holds the others still.

Blocks of `all` lie between blocks in which one tenant is awake, so that its rate alone is compared with its rates
beside the others before and after. Everything here is pure: who freezes and thaws is the conductor.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from cotenant.stats.kept import MOST_APART, warmed_up

WANTED_ROUNDS, LEAST_ROUNDS = 20, 8
WARM_UP_ROUNDS = 1
"""Rounds more than are wanted: so many may be of the warm-up."""
MEASURED_NS = 200_000_000
STEPS_IN_A_BLOCK = 10
OBSERVATIONS_IN_A_BLOCK = 10
AFTER_THAW_NS, AFTER_BORDER_NS, AFTER_THAW_ON_DEVICES_NS = 150_000_000, 50_000_000, 300_000_000
"""The time that is left out behind a border: after a thaw (the first 20 ms run 5 to 15 % slow), for tenants that went
on, and on devices, where the queue of a frozen tenant still runs."""
OPENING_NS = 500_000_000
"""Beside a step, how long a block lasts at most that only times steps."""
BUDGET_NS = 7_500_000_000
"""A launch's time for each of its tenants, where nobody says another."""
LATEST_NS = 1_000_000_000
"""A block that lasted so much longer than planned was disturbed: the runner was stopped, or starved."""


Kind = Literal["all", "only", "turn"]
ALL: Kind = "all"
ONLY: Kind = "only"
TURN: Kind = "turn"
HOME = -1
"""The slice that a tenant was planned for; others are the slots of a pair."""
Turn = tuple[Kind, Mapping[int, int]]
"""The tenants that are awake in a block, and the slot of each: all that are beside each other, one only, or the half of
a duet whose turn it is."""
_ANY = random.Random(0)
"""For choices that are about the same in any order."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a launch in which the tenants that are `awake` run, each in a slot."""

    index: int
    round: int
    kind: Kind
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
    """The place of an observation: its block and the block's kind; none across a border."""

    block: int | None
    kind: Kind | Literal[""]
    kept: bool


NOWHERE = Place(None, "", False)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The rounds of a launch; `steps_ns` is the time of a step, by tenant, and `rounds` those behind the warm-up.

    In each round every tenant is alone once, in an order drawn anew, a few of them between two blocks of all. Whoever
    ran just before a block goes on into it, which is faster than to be thawed for it: with up to four tenants that is
    as often so of its turns alone as of the blocks of all. The last block is of all.
    """

    steps_ns: Mapping[int, int]
    on_devices: bool
    rounds: int

    @property
    def round_ns(self) -> int:
        """How long a round takes, about that where it is drawn."""
        return self._needed_ns()

    @property
    def total_ns(self) -> int:
        """How long all blocks take, those of the warm-up included."""
        ends = (*self._first(), *self._last())
        ends_ns = sum(self._lasting_ns(turn, None) for turn in ends)
        return (self.rounds + WARM_UP_ROUNDS) * self.round_ns + ends_ns

    @property
    def awake_ns(self) -> int:
        """How long of that a tenant is awake at the most."""
        return self.total_ns

    @property
    def opening(self) -> int:
        """How many blocks come before the first round: nothing is kept of them."""
        return len(self._first())

    @property
    def is_parted(self) -> bool:
        """Whether some tenants meet in some blocks, and others in others: each meeting has records of its own."""
        return False

    @property
    def most_rounds(self) -> int:
        """How many rounds are worth their time."""
        return WANTED_ROUNDS

    def blocks(self, chance: random.Random) -> Iterator[Block]:
        """Yield all blocks, in their order."""
        middle = ((number, self._round(number, chance)) for number in range(self.rounds + WARM_UP_ROUNDS))
        rounds = itertools.chain([(0, self._first())], middle, [(self.rounds, self._last())])
        turns = ((number, turn) for number, of_round in rounds for turn in of_round)
        before: Turn | None = None
        for index, (number, turn) in enumerate(turns):
            kind, awake = turn
            block = Block(index, number, kind, awake, self._lasting_ns(turn, before))
            if self.is_parted and index < self.opening:
                most_ns = OPENING_NS + max(self.steps_ns[tenant] for tenant in awake)
                block = replace(block, lasting_ns=min(block.lasting_ns, most_ns))
            yield block
            before = turn

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
    def everybody(self) -> Mapping[int, int]:
        """All tenants, at home."""
        return dict.fromkeys(sorted(self.steps_ns), HOME)

    def _round(self, number: int, chance: random.Random) -> Sequence[Turn]:
        """Return who is awake in the blocks of the round of this number."""
        return self._turns(chance)

    def _turns(self, chance: random.Random) -> Sequence[Turn]:
        """Return who is awake in the blocks of any round."""
        return cycles(self.everybody, chance)

    def _first(self) -> Sequence[Turn]:
        """Return who is awake before the first round."""
        return []

    def _last(self) -> Sequence[Turn]:
        """Return who is awake behind the last round."""
        return [(ALL, self.everybody)]

    def _needed_ns(self) -> int:
        """Return how long the turns of a round need, behind a round like it."""
        turns = self._turns(_ANY)
        return sum(self._lasting_ns(turn, before) for before, turn in zip([turns[-1], *turns], turns, strict=False))

    def _lasting_ns(self, turn: Turn, before: Turn | None) -> int:
        """Return the time that a turn needs behind another one: its longest leave-out, and then its measured part.

        Behind none all are as if they had rested.
        """
        awake, ran = turn[1], {} if before is None else before[1]
        left_out_ns = max(self.left_out_ns(tenant, ran.get(tenant) != awake[tenant]) for tenant in awake)
        return left_out_ns + max(MEASURED_NS, STEPS_IN_A_BLOCK * self._step_ns(awake))

    def _step_ns(self, awake: Mapping[int, int]) -> int:
        """Return how long a step takes that each of these tenants makes beside the others."""
        return max(self.steps_ns[tenant] for tenant in awake)


def cycles(there: Mapping[int, int], chance: random.Random) -> list[Turn]:
    """Return turns of a round: each of those `there` alone once, behind blocks of them all, in an order drawn anew."""
    order = chance.sample([*there], len(there))
    parts = math.ceil(len(order) / MOST_APART)
    alone = [[(ONLY, {tenant: there[tenant]}) for tenant in order[part::parts]] for part in range(parts)]
    return [turn for some in alone for turn in ((ALL, there), *some)]


Made = TypeVar("Made", bound=Schedule)


def within(least: Made, budget_ns: int) -> Made | None:
    """Return a schedule of as many rounds as fit a budget, and at least its own; None where these take twice as
    long."""
    if least.total_ns > 2 * budget_ns:
        return None
    more = max(0, budget_ns - least.total_ns) // least.round_ns
    return replace(least, rounds=min(least.most_rounds, least.rounds + more))


def places(
    spans: Sequence[tuple[int, int]],
    passed: Sequence[Passed],
    tenant: int,
    schedule: Schedule,
    members: Collection[int] = (),
) -> list[Place]:
    """Return where each observation of a tenant lies, in the order of time: `spans` are their first and last moment.

    Those wholly behind a block's leave-out and before its end are kept, but for those of void blocks, and of rounds in
    which the tenant was still warming up (`warmed_up`). `members` are those whose meeting counts, by default all: no
    other block of theirs is a place but those of one of them beside it.
    """
    windows = list(_windows(passed, tenant, schedule, {*members} or schedule.steps_ns.keys()))
    found: list[Place] = []
    times: dict[int, list[float]] = defaultdict(list)
    rounds = {one.block.index: one.block.round for one in passed}
    at = 0
    for start_ns, end_ns in spans:
        while at < len(windows) and windows[at][0].end_ns < end_ns:
            at += 1
        one, from_ns = windows[at] if at < len(windows) else (None, 0)
        if one is None or start_ns < one.start_ns:
            found.append(NOWHERE)
            continue
        kept = start_ns >= from_ns and one.block.index >= schedule.opening and not one.void
        found.append(Place(one.block.index, one.block.kind, kept))
        if kept and one.block.kind != ONLY:
            times[one.block.round].append(end_ns - start_ns)
    first = warmed_up(times)
    return [
        replace(place, kept=False) if place.block is not None and rounds[place.block] < first else place
        for place in found
    ]


def _windows(
    passed: Sequence[Passed], tenant: int, schedule: Schedule, members: Collection[int]
) -> Iterator[tuple[Passed, int]]:
    """Yield the blocks that count in which a tenant ran, with the moment from which its observations do."""
    counting = {*_beside(passed, tenant, members)}
    before = schedule.everybody
    for at, one in enumerate(passed):
        awake = one.block.awake
        if tenant in awake and (at in counting or one.block.kind == TURN):
            thawed = before.get(tenant) != awake[tenant]
            yield one, one.start_ns + schedule.left_out_ns(tenant, thawed)
        before = awake


def _beside(passed: Sequence[Passed], tenant: int, members: Collection[int]) -> Iterator[int]:
    """Yield where members meet, and where a tenant is alone nearest to it in the same round, by the blocks it is in."""
    own = [at for at, one in enumerate(passed) if tenant in one.block.awake]
    alone: dict[int, list[int]] = defaultdict(list)
    for place, at in enumerate(own):
        if passed[at].block.kind == ONLY:
            alone[passed[at].block.round].append(place)
    for place, at in enumerate(own):
        if passed[at].block.kind != ONLY and passed[at].block.awake.keys() == {*members}:
            yield at
            if turns := alone[passed[at].block.round]:
                yield own[min(turns, key=lambda turn: abs(turn - place))]
