"""Schedules of blocks for a launch: in each block some tenants run, and the kernel holds the others still.

Blocks in which one tenant is awake are between blocks of `all`, so that its rate alone is compared with its rates
beside the others before and after. Everything here is pure: the conductor freezes and thaws.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeVar

from cotenant.stats.kept import MOST_APART, warmed_up

WANTED_ROUNDS, LEAST_ROUNDS = 20, 8
WARM_UP_ROUNDS = 1
"""Additional rounds, which may belong to the warm-up."""
MEASURED_NS = 200_000_000
STEPS_IN_A_BLOCK = 10
OBSERVATIONS_IN_A_BLOCK = 10
AFTER_THAW_NS, AFTER_BORDER_NS, AFTER_THAW_ON_DEVICES_NS = 150_000_000, 50_000_000, 300_000_000
"""The times that are left out after a border: after a thaw (the first 20 ms run 5 to 15 % slow), for tenants that went
on, and after a thaw on devices, or a freeze on shared ones, where the queue of a frozen tenant still runs."""
OPENING_NS = 500_000_000
"""The most time, beside a step, of a block that only times steps."""
BUDGET_NS = 7_500_000_000
"""A launch's default time for each of its tenants."""
LATEST_NS = 1_000_000_000
"""A block that lasted so much longer than planned was disturbed: the runner was stopped, or got no processor."""


Kind = Literal["all", "only", "turn"]
ALL: Kind = "all"
ONLY: Kind = "only"
TURN: Kind = "turn"
HOME = -1
"""The slot number of a tenant's own slice; other numbers are the slots of a pair."""
Turn = tuple[Kind, Mapping[int, int]]
"""A block's kind, and the slot of each tenant that is awake in it: all that run beside each other, a single one, or the
half of a duet whose turn it is."""
_ANY = random.Random(0)
"""For estimates that hardly depend on the order of turns."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a launch in which the tenants that are `awake` run, each in a slot.

    `left_out_ns` is the time at its begin that does not count, for each of them. Nothing in it counts without `counts`.
    """

    index: int
    round: int
    kind: Kind
    awake: Mapping[int, int]
    lasting_ns: int
    left_out_ns: Mapping[int, int]
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Passed:
    """A block as it was carried out: from the thaw of its last tenant to the moment before the next one was frozen.

    No observation in a `void` block is kept.
    """

    block: Block
    start_ns: int
    end_ns: int
    void: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an observation: its block, and that one's kind and round; None and "" if it crosses a border."""

    block: int | None = None
    kind: Kind | Literal[""] = ""
    kept: bool = False
    round: int | None = None


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Schedule:
    """The rounds of a launch; `steps_ns` is the time of a step by tenant, `rounds` their number after the warm-up,
    `on_devices` the most tenants on one device, 0 without devices.

    In each round every tenant is alone once, in a new random order, with a few such blocks between two blocks of all.
    A tenant that ran just before a block goes on into it, which is faster than a thaw: with up to four tenants that
    happens as often before its blocks alone as before blocks of all. The last block is one of all.
    """

    is_parted: ClassVar[bool] = False
    """Whether different tenants meet in different blocks, so that each meeting has its own records."""
    mean_stretch: ClassVar[float] = 1.0
    """The factor by which chance stretches the blocks of a round, on average."""
    steps_ns: Mapping[int, int]
    on_devices: int
    rounds: int

    @property
    def round_ns(self) -> int:
        """Nanoseconds of a round after a similar one, on average if they are random."""
        turns = self._round(WARM_UP_ROUNDS, _ANY)
        pairs = zip([turns[-1], *turns], turns, strict=False)
        return round(self.mean_stretch * sum(self._lasting_ns(turn, before) for before, turn in pairs))

    @property
    def total_ns(self) -> int:
        """Nanoseconds of all blocks, those of the warm-up included."""
        ends_ns = sum(self._lasting_ns(turn, None) for turn in (*self._first(), *self._last()))
        return (self.rounds + WARM_UP_ROUNDS) * self.round_ns + ends_ns

    @property
    def awake_ns(self) -> int:
        """The most nanoseconds of the total that a tenant is awake."""
        return self.total_ns

    @property
    def opening(self) -> int:
        """The number of blocks before the first round, of which no observation is kept."""
        return len(self._first())

    @property
    def most_rounds(self) -> int:
        """The number beyond which further rounds are not worth their time."""
        return WANTED_ROUNDS

    def blocks(self, chance: random.Random) -> Iterator[Block]:
        """Yield all blocks, in order."""
        middle = ((number, self._round(number, chance)) for number in range(self.rounds + WARM_UP_ROUNDS))
        rounds = itertools.chain([(0, self._first())], middle, [(self.rounds, self._last())])
        turns = ((number, turn) for number, of_round in rounds for turn in of_round)
        before: Turn | None = None
        for index, (number, turn) in enumerate(turns):
            kind, awake = turn
            left_out_ns, counts = self._left_out_ns(turn, before), index >= self.opening
            block = Block(index, number, kind, awake, self._lasting_ns(turn, before), left_out_ns, counts)
            if self.is_parted and index < self.opening:
                most_ns = OPENING_NS + max(self.steps_ns[tenant] for tenant in awake)
                block = replace(block, lasting_ns=min(block.lasting_ns, most_ns))
            yield block
            before = turn

    def number(self, tenants: Sequence[int], requested: int) -> int:
        """Return the number of steps in an observation of these tenants, so that a block holds enough observations."""
        step_ns = max(self.steps_ns[tenant] for tenant in tenants)
        return max(1, min(requested, MEASURED_NS // (OBSERVATIONS_IN_A_BLOCK * step_ns)))

    def left_out_ns(self, tenant: int, thawed: bool, held: Collection[int] = ()) -> int:
        """Return the nanoseconds after a border in which a tenant's observations do not count.

        `held` are the tenants that it froze: on a shared device what they had queued runs beside who is awake now.
        """
        left_ns = AFTER_BORDER_NS
        if thawed:
            left_ns = (AFTER_THAW_ON_DEVICES_NS if self.on_devices else AFTER_THAW_NS) + self.steps_ns[tenant]
        if held and self.on_devices > 1:
            left_ns = max(left_ns, AFTER_THAW_ON_DEVICES_NS + self._step_ns(held))
        return left_ns

    @property
    def everybody(self) -> Mapping[int, int]:
        """All tenants, in their own slices."""
        return dict.fromkeys(sorted(self.steps_ns), HOME)

    def _round(self, number: int, chance: random.Random) -> Sequence[Turn]:
        """Return the turns of the round of this number, one for each block."""
        return cycles(self.everybody, chance)

    def _first(self) -> Sequence[Turn]:
        """Return the turns before the first round."""
        return []

    def _last(self) -> Sequence[Turn]:
        """Return the turns after the last round."""
        return [(ALL, self.everybody)]

    def _lasting_ns(self, turn: Turn, before: Turn | None) -> int:
        """Return the nanoseconds that a turn needs after another: the longest time left out, then the measured part.

        If there is none before it, all its tenants are taken to have rested.
        """
        measured_ns = max(MEASURED_NS, STEPS_IN_A_BLOCK * self._step_ns(turn[1]))
        return measured_ns + max(self._left_out_ns(turn, before or (ALL, {})).values())

    def _left_out_ns(self, turn: Turn, before: Turn | None) -> dict[int, int]:
        """Return the nanoseconds that each tenant of a turn leaves out; before the first turn all have run."""
        awake, ran = turn[1], self.everybody if before is None else before[1]
        held = ran.keys() - awake.keys()
        return {tenant: self.left_out_ns(tenant, ran.get(tenant) != awake[tenant], held) for tenant in awake}

    def _step_ns(self, awake: Collection[int]) -> int:
        """Return the nanoseconds in which each of these tenants can make a step beside the others."""
        return max(self.steps_ns[tenant] for tenant in awake)


def cycles(there: Mapping[int, int], chance: random.Random) -> list[Turn]:
    """Return the turns of a round: each tenant of `there` alone once, in random order, after blocks of them all."""
    order = chance.sample([*there], len(there))
    parts = math.ceil(len(order) / MOST_APART)
    alone = [[(ONLY, {tenant: there[tenant]}) for tenant in order[part::parts]] for part in range(parts)]
    return [turn for some in alone for turn in ((ALL, there), *some)]


Made = TypeVar("Made", bound=Schedule)


def within(least: Made, budget_ns: int) -> Made | None:
    """Return a schedule of as many rounds as fit a budget, at least its own; None if they take over twice as long."""
    if least.total_ns > 2 * budget_ns:
        return None
    more = max(0, budget_ns - least.total_ns) // least.round_ns
    return replace(least, rounds=min(least.most_rounds, least.rounds + more))


def places(
    spans: Sequence[tuple[int, int]],
    passed: Sequence[Passed],
    tenant: int,
    members: Collection[int],
) -> list[Place]:
    """Return the place of each observation of a tenant, in order of time; `spans` are their starts and ends.

    Observations between the time left out and a block's end are kept, except in void blocks, and in rounds in which
    the tenant was still warming up (`warmed_up`). `members` are the tenants whose meeting counts: only their common
    blocks, and for each the nearest block of the tenant alone, are places.
    """
    counting = {*_beside(passed, tenant, members)}
    windows = [
        one for at, one in enumerate(passed) if tenant in one.block.awake and (at in counting or one.block.kind == TURN)
    ]
    found: list[Place] = []
    times: dict[int, list[float]] = defaultdict(list)
    at = 0
    for start_ns, end_ns in spans:
        while at < len(windows) and windows[at].end_ns < end_ns:
            at += 1
        if at == len(windows) or start_ns < windows[at].start_ns:
            found.append(NOWHERE)
            continue
        one, block = windows[at], windows[at].block
        kept = start_ns >= one.start_ns + block.left_out_ns[tenant] and block.counts and not one.void
        found.append(Place(block.index, block.kind, kept, block.round))
        if kept and block.kind != ONLY:
            times[block.round].append(end_ns - start_ns)
    first = warmed_up(times)
    return [replace(place, kept=False) if place.round is not None and place.round < first else place for place in found]


def _beside(passed: Sequence[Passed], tenant: int, members: Collection[int]) -> Iterator[int]:
    """Yield the indices of blocks in which members meet, and for each the tenant's nearest one alone in its round, in
    the same slot."""
    own = [(at, one.block) for at, one in enumerate(passed) if tenant in one.block.awake]
    alone: dict[tuple[int, int], list[int]] = defaultdict(list)
    for at, block in own:
        if block.kind == ONLY:
            alone[block.round, block.awake[tenant]].append(at)
    for at, block in own:
        if block.kind != ONLY and block.awake.keys() == {*members}:
            yield at
            if turns := alone[block.round, block.awake[tenant]]:
                yield min(turns, key=lambda turn: abs(turn - at))
