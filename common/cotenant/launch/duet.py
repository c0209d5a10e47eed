"""Duets: two halves of the tenants take turns in the same slices. Pure; the conductor freezes and thaws."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from cotenant.launch.schedule import ALL, HOME, TURN, WARM_UP_ROUNDS, Block, Schedule, Turn

DUET_BUDGET_NS, MOST_DUET_NS = 8_000_000_000, 60_000_000_000
"""The default time of a launch, and of one whose steps leave no time for the fewest rounds within it."""
LEAST_DUET_ROUNDS = 4
"""A duet has several launches, over which its interval is."""
MOST_DUET_ROUNDS = 2000
"""Some forty minutes: a difference that needs more rounds is smaller than the noise between two launches."""
MOST_STRETCH = 1.5


@dataclass(frozen=True, slots=True)
class DuetSchedule(Schedule):
    """Each round is A B B A, so that drift cancels; each half is thawed for one block, and goes on into the other.

    A random factor of up to 1.5 stretches the blocks of a round, so that no periodic work on the host meets the same
    half each time.
    """

    mean_stretch: ClassVar[float] = (1 + MOST_STRETCH) / 2
    halves: tuple[frozenset[int], frozenset[int]]

    @property
    def awake_ns(self) -> int:
        return self.total_ns // 2

    @property
    def most_rounds(self) -> int:
        return MOST_DUET_ROUNDS

    def blocks(self, chance: random.Random) -> Iterator[Block]:
        stretches = [chance.uniform(1, MOST_STRETCH) for _ in range(self.rounds + WARM_UP_ROUNDS)]
        for block in Schedule.blocks(self, chance):
            stretch = stretches[block.round] if block.kind == TURN else 1
            yield replace(block, lasting_ns=round(stretch * block.lasting_ns))

    def _round(self, number: int, chance: random.Random) -> Sequence[Turn]:
        first, second = (dict.fromkeys(sorted(half), HOME) for half in self.halves)
        return [(TURN, first), (TURN, second), (TURN, second), (TURN, first)]

    def _first(self) -> Sequence[Turn]:
        # At GO all tenants run.
        return [(ALL, self.everybody)]

    def _last(self) -> Sequence[Turn]:
        return []
