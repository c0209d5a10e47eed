"""The parts of all designs: turns, rounds and their tempo, the room of a launch, and the interface of a design.

A design is a generator of rounds, which is sent the blocks and observations so far after each. Everything here is
pure: the conductor freezes, moves and thaws.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from cotenant.isolation.slice import Slice
from cotenant.launch.design.passed import ALL, HOME, ONLY, Block, Kind, Passed, SeenSoFar
from cotenant.results.record import Side
from cotenant.stats.duet import DuetRatio
from cotenant.stats.kept import MOST_APART, BlockSum

WARM_UP_ROUNDS = 1
"""Additional rounds, which may belong to the warm-up."""
MEASURED_NS = 200_000_000
STEPS_IN_A_BLOCK = 10
OBSERVATIONS_IN_A_BLOCK = 10
AFTER_THAW_NS, AFTER_BORDER_NS, AFTER_THAW_ON_DEVICES_NS = 150_000_000, 50_000_000, 300_000_000
"""The times left out after a border: by thawed tenants (the first 20 ms run 5 to 15 % slow), by tenants that went on,
and on devices by thawed tenants, or after a freeze on shared ones, as the queue of a frozen tenant still runs."""
BESIDE_AFTER_THAW_NS = 1_000_000_000
"""The time that all leave out of a turn of all after one of them was thawed. A processor that rested runs slowly for
0.4 s if its neighbours rest, and for up to a second if they are busy (docs/method-details.md)."""
OPENING_NS = 500_000_000
"""The most time, in addition to one step, of a block that does not count, which only times steps."""
BUDGET_NS = 7_500_000_000
"""A launch's default time for each of its tenants."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The tenants of a block, each with its slot: `all` beside each other, `only` one, or the half of a duet whose
    `turn` it is."""

    kind: Kind
    awake: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Tempo:
    """Computes the times of blocks from each tenant's step time; `on_devices` is the most tenants on one device, 0
    without devices. Tenants share the time of the `slices` if these are fewer."""

    steps_ns: Mapping[int, int]
    on_devices: int
    slices: int

    def number(self, tenants: Collection[int], requested: int) -> int:
        """Return the number of steps in an observation of these tenants, so that a block holds enough observations."""
        step_ns = max(self.steps_ns[tenant] for tenant in tenants)
        return max(1, min(requested, MEASURED_NS // (OBSERVATIONS_IN_A_BLOCK * step_ns)))

    def left_out_ns(self, turn: Turn, ran: Mapping[int, int]) -> dict[int, int]:
        """Return the nanoseconds that each tenant leaves out of a turn; `ran` has the slots of the tenants before it.

        On a shared device the queued work of frozen tenants runs beside the tenants that are awake now.
        """
        after_thaw_ns = AFTER_THAW_ON_DEVICES_NS if self.on_devices else AFTER_THAW_NS
        held = ran.keys() - turn.awake.keys()
        queued_ns = AFTER_THAW_ON_DEVICES_NS + self._step_ns(held) if held and self.on_devices > 1 else 0
        goes_on = {tenant: ran.get(tenant) == slot for tenant, slot in turn.awake.items()}
        # Between the halves of a duet the slowness after a thaw cancels.
        beside_ns = BESIDE_AFTER_THAW_NS if turn.kind == ALL and not all(goes_on.values()) else 0
        return {
            tenant: max(
                queued_ns, beside_ns, AFTER_BORDER_NS if goes_on[tenant] else after_thaw_ns + self.steps_ns[tenant]
            )
            for tenant in turn.awake
        }

    def lasting_ns(self, turn: Turn, ran: Mapping[int, int]) -> int:
        """Return the nanoseconds that a turn needs: the longest time left out, then the measured part."""
        measured_ns = max(MEASURED_NS, STEPS_IN_A_BLOCK * self._step_ns(turn.awake))
        return measured_ns + max(self.left_out_ns(turn, ran).values())

    def opening_ns(self, awake: Collection[int]) -> int:
        """Return the most nanoseconds of a turn that does not count."""
        return OPENING_NS + max(self.steps_ns[tenant] for tenant in awake)

    def round_ns(self, turns: Sequence[Turn]) -> int:
        """Return the nanoseconds of a round after a similar one."""
        pairs = zip([turns[-1], *turns], turns, strict=False)
        return sum(self.lasting_ns(turn, before.awake) for before, turn in pairs)

    def timed(self, seen: SeenSoFar, usual: Mapping[int, int] | None = None) -> Tempo:
        """Return the tempo with the step times seen of tenants alone; others have the `usual` ones, or keep theirs."""
        return replace(self, steps_ns={**(usual or self.steps_ns), **seen.steps_alone_ns()})

    def _step_ns(self, awake: Collection[int]) -> int:
        """Return the nanoseconds in which each of these tenants can make a step beside the others."""
        return math.ceil(len(awake) / self.slices) * max(self.steps_ns[tenant] for tenant in awake)


@dataclass(frozen=True, slots=True)
class Round:
    """Turns at a tempo, each stretched by a factor. A `number` below WARM_UP_ROUNDS may belong to the warm-up."""

    number: int
    turns: Sequence[Turn]
    tempo: Tempo
    stretch: float = 1.0
    counts: bool = True

    def block(self, index: int, turn: Turn, ran: Mapping[int, int] | None) -> Block:
        """Return the block of a turn; `ran` has the slots of the tenants before it, None before the first block."""
        lasting_ns = round(self.stretch * self.tempo.lasting_ns(turn, ran or {}))
        if not self.counts:
            lasting_ns = min(lasting_ns, self.tempo.opening_ns(turn.awake))
        left_out_ns = self.tempo.left_out_ns(turn, turn.awake if ran is None else ran)
        return Block(index, self.number, turn.kind, turn.awake, lasting_ns, left_out_ns, self.counts)

    @property
    def lasting_ns(self) -> int:
        """Nanoseconds of the round, if all its tenants rested before it."""
        turns = zip([{}, *(turn.awake for turn in self.turns)], self.turns, strict=False)
        return sum(self.block(0, turn, ran).lasting_ns for ran, turn in turns)


Rounds = Generator[Round, SeenSoFar, bool]
"""The rounds of a launch; each is sent the blocks and observations so far. They return whether all were made."""


def blocks_of(rounds: Rounds) -> Generator[Block, SeenSoFar, bool]:
    """Yield the blocks of these rounds, and send on the blocks and observations so far; return the rounds' result."""
    index, ran, made = 0, None, next(rounds)
    while True:
        for turn in made.turns:
            seen = yield made.block(index, turn, ran)
            index, ran = index + 1, turn.awake
        try:
            made = rounds.send(seen)
        except StopIteration as ended:
            return bool(ended.value)


@dataclass(frozen=True, slots=True)
class Room:
    """The conditions of a launch once all tenants are ready: `steps_ns` is the time of a step by tenant, `on_devices`
    the most tenants on one device, 0 without devices."""

    steps_ns: Mapping[int, int]
    on_devices: int = 0
    budget_ns: int | None = None
    """The time for the blocks, if it is not the usual one."""
    left_ns: int = 0
    """The time until the launch's limit."""
    narrow: float | None = None
    """The share of the median at which half an interval is narrow enough to end."""
    chance: random.Random = field(default_factory=random.SystemRandom)

    @property
    def everybody(self) -> dict[int, int]:
        """All tenants, in their own slices."""
        return dict.fromkeys(sorted(self.steps_ns), HOME)

    def is_enough(self, seen: SeenSoFar) -> bool:
        """Return whether all intervals are narrow enough."""
        return self.narrow is not None and seen.is_narrow(self.narrow)

    @property
    def tempo(self) -> Tempo:
        """The tempo of tenants with slices of their own."""
        return Tempo(self.steps_ns, self.on_devices, len(self.steps_ns))


@dataclass(frozen=True, slots=True)
class DesignPlan:
    """A launch's rounds, the tempo by which observations are made, and the expected time.

    `awake_ns` is the most time in it that a tenant is awake.
    """

    rounds: Rounds
    tempo: Tempo
    expected_ns: int
    awake_ns: int


@dataclass(frozen=True, slots=True)
class DuetPlace:
    """A tenant's place in a duet: its side, and the number of the slice that it shares with one of the other side."""

    side: Side
    slice: int

    @property
    def half(self) -> int:
        """The half, 0 or 1, with which it is awake: half 0 is A in even slices, and B in odd ones."""
        return (self.side == "B") ^ (self.slice % 2)


class Design:
    """Decides which tenants run beside each other, and in which order. A design of blocks overrides `plan` at least."""

    takes_turns: ClassVar[bool] = True
    """True if it has blocks."""
    failure: ClassVar[str] = ""
    """The sentence, with {why}, that ends a launch that cannot have blocks; "" if it goes on without them."""
    has_parts: ClassVar[bool] = False
    """True if different tenants meet in different blocks, so that each meeting has its own records."""
    refusal: str = ""
    """The reason why it has no blocks, if it is known beforehand."""
    slots: Sequence[Slice] = ()
    """Slices, in addition to the tenants' own, in which tenants meet."""

    def usual_ns(self, tenants: int) -> int:
        """Return the time of a launch without a budget."""
        return tenants * BUDGET_NS

    def plan(self, room: Room) -> DesignPlan | str:
        """Return the plan, or the reason why there can be none."""
        raise NotImplementedError

    def meetings(self, tenants: int, passed: Sequence[Passed] = ()) -> Sequence[tuple[int, ...]]:
        """Return the tenants of each meeting that has records, if these blocks have `passed`."""
        return [tuple(range(tenants))]

    def name(self, launch: str, cells: Sequence[str]) -> str:
        """Return the name of a meeting of some of a launch's tenants, which run these cells."""
        return f"{launch}.x{len(cells)}"

    def place(self, tenant: int) -> DuetPlace | None:
        """Return a tenant's place in a duet, else None."""
        return None

    def are_beside(self, tenant: int, other: int) -> bool:
        """Return whether two tenants of a meeting run at the same time."""
        return True

    def ratio(self, sums: Mapping[int, Sequence[BlockSum]], passed: Sequence[Passed]) -> DuetRatio | None:
        """Return B over A, by each tenant's kept observations; None without a duet or its blocks."""
        return None


def cycles(there: Mapping[int, int], chance: random.Random) -> list[Turn]:
    """Return the turns of a round: each tenant of `there` alone once, in random order, after turns of them all.

    At most MOST_APART turns alone follow each turn of all. A tenant that ran just before a block goes on into it, which
    is faster than a thaw: with up to four tenants that happens equally often before blocks alone and blocks of all.
    """
    order = chance.sample([*there], len(there))
    parts = math.ceil(len(order) / MOST_APART)
    alone = [[Turn(ONLY, {tenant: there[tenant]}) for tenant in order[part::parts]] for part in range(parts)]
    return [turn for some in alone for turn in (Turn(ALL, there), *some)]


def rounds_within(budget_ns: int, round_ns: int, others_ns: int, least: int, most: int) -> int | None:
    """Return the number of rounds after the warm-up that fit a budget with the other blocks, at least `least`; None if
    `least` rounds take over twice the budget."""
    least_ns = (least + WARM_UP_ROUNDS) * round_ns + others_ns
    if least_ns > 2 * budget_ns:
        return None
    return min(most, least + max(0, budget_ns - least_ns) // round_ns)


def too_long(room: Room, least: int) -> str:
    """Return the reason why `rounds_within` found none."""
    return f"{least} rounds of steps of {max(room.steps_ns.values()) / 1e9:.2g} s take more than twice the budget"
