"""Blocks of a launch as they were carried out, and the place of each observation among them. Pure."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from cotenant.results.record import Observed
from cotenant.stats.describe import relative_half_width
from cotenant.stats.kept import BlockSum, block_sums, warmed_up

Kind = Literal["all", "only", "turn"]
ALL: Kind = "all"
ONLY: Kind = "only"
TURN: Kind = "turn"
HOME = -1
"""The slot number of a tenant's own slice; other numbers are the design's slots."""


@dataclass(frozen=True, slots=True)
class Block:
    """A turn of a launch: the tenants that are `awake` in it, and the slot of each.

    `left_out_ns` is the time at its start that does not count, by tenant. Without `counts` nothing in it counts.
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
    """A block as it was carried out: from the thaw of its last tenant to the moment before the first freeze after it.

    No observation in a `void` block is kept.
    """

    block: Block
    start_ns: int
    end_ns: int
    void: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an observation: its block, and the block's kind and round; None and "" if it lies in none."""

    block: int | None = None
    kind: Kind | Literal[""] = ""
    kept: bool = False
    round: int | None = None


NOWHERE = Place()


def places(
    spans: Sequence[tuple[int, int]],
    passed: Sequence[Passed],
    tenant: int,
    members: Collection[int],
) -> list[Place]:
    """Return the place of each observation of a tenant, in order of time; `spans` are their starts and ends.

    Observations between the time left out and a block's end are kept, except in void blocks, and in rounds in which
    the tenant was still warming up (`warmed_up`). Places are only the common blocks of `members`, for each the nearest
    block of the tenant alone, and the turns of a duet.
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
    """Yield the index of each block in which exactly these members meet, and of the tenant's nearest block alone in the
    same round and slot."""
    blocks = [(at, one.block) for at, one in enumerate(passed) if tenant in one.block.awake]
    alone: dict[tuple[int, int], list[int]] = defaultdict(list)
    for at, block in blocks:
        if block.kind == ONLY:
            alone[block.round, block.awake[tenant]].append(at)
    for at, block in blocks:
        if block.kind != ONLY and block.awake.keys() == {*members}:
            yield at
            if turns := alone[block.round, block.awake[tenant]]:
                yield min(turns, key=lambda turn: abs(turn - at))


@dataclass(frozen=True, slots=True)
class SeenSoFar:
    """The blocks of a launch so far, including the one that ends now, and each tenant's observations, in order of time;
    `numbers` has the steps in an observation of each tenant."""

    passed: Sequence[Passed]
    rows: Mapping[int, Sequence[Observed]]
    numbers: Mapping[int, int]

    @property
    def lasted_ns(self) -> int:
        return self.passed[-1].end_ns - self.passed[0].start_ns

    def steps_alone_ns(self) -> dict[int, int]:
        """Return the median step time, in ns, of each tenant that made observations while it alone was awake."""
        steps_ns = {}
        for tenant, rows in self.rows.items():
            alone = [(one.start_ns, one.end_ns) for one in self.passed if [*one.block.awake] == [tenant]]
            inside = [
                end - start
                for start, end in _spans(rows)
                if any(begin <= start < end <= until for begin, until in alone)
            ]
            if inside:
                steps_ns[tenant] = round(median(inside) / self.numbers[tenant])
        return steps_ns

    def is_narrow(self, share: float) -> bool:
        """Return whether half the interval of each tenant's median rate, beside all others or in its turns, is at most
        `share` of the median."""
        for tenant, rows in self.rows.items():
            found = places(_spans(rows), self.passed, tenant, self.rows.keys())
            kept = (row for row, place in zip(rows, found, strict=True) if place.kept and place.kind != ONLY)
            if not is_narrow(kept, share):
                return False
        return True

    def sums(self, tenant: int, members: Collection[int], number: int) -> list[BlockSum]:
        """Return the sums of a tenant's blocks beside these members, and alone, in the round of this number."""
        of_round = [one for one in self.passed if one.block.round == number and one.block.counts]
        begin_ns = of_round[0].start_ns
        rows = [*itertools.takewhile(lambda row: row.start_ns >= begin_ns, reversed(self.rows[tenant]))][::-1]
        return block_sums(
            (place.block or 0, place.kind == ONLY, row.items or 0.0, row.took_ns)
            for place, row in zip(places(_spans(rows), of_round, tenant, members), rows, strict=True)
            if place.kept and row.items
        )


def _spans(rows: Iterable[Observed]) -> list[tuple[int, int]]:
    return [(row.start_ns, row.end_ns) for row in rows]


def is_narrow(rows: Iterable[Observed], share: float) -> bool:
    """Return whether half the interval of the median rate is known, and at most `share` of the median."""
    width = relative_half_width([(row.items or 0) * 1e9 / row.took_ns for row in rows])
    return width is not None and width <= share
