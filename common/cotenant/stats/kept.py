"""Estimates the share of its rate that a tenant keeps beside others, by its blocks beside them and alone.

Such turns within one run are compared by Bulej et al. (Duet benchmarking, ICPE 2020) and by Abedi and Brecht
(Randomized multiple interleaved trials, ICPE 2017): drift and place in memory, which both sides share, drop out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean, median, stdev
from typing import Literal

from cotenant.decoding import Whole
from cotenant.stats.correlation import lag_correlation, variance_inflation
from cotenant.stats.quantiles import t_975

NORMAL = 1.9599
"""No t at this confidence is below that of a normal distribution."""
LEAST_ROUNDS = 3
"""With fewer rounds there is no interval."""
MOST_APART = 4
"""A solo block is compared with shared blocks up to this many blocks away: so many solo blocks may be between two."""
WARM_UP_PART = 4
"""At most one of this many rounds is warm-up."""
LEAST_FOR_LAG = 8
"""With fewer rounds a correlation is noise. Two rounds with one shared block in common correlate by a sixth anyway."""


@dataclass(frozen=True, slots=True)
class BlockSum:
    """The kept observations of one block of a tenant, the `index`-th of a launch: their items, the seconds that they
    took, and the items per second of each."""

    index: int
    alone: bool
    items: float
    seconds: float
    rates: tuple[float, ...]

    @property
    def log_rate(self) -> float:
        return math.log(self.items / self.seconds)


def block_sums(made: Iterable[tuple[int, bool, float, int]]) -> list[BlockSum]:
    """Return the sums of blocks, by the kept observations of a tenant in the order of time.

    For each observation: the index of its block, whether the tenant was alone there, its items and its nanoseconds.
    """
    sums = []
    for (index, alone), of_block in itertools.groupby(made, key=lambda row: row[:2]):
        _, _, items, lasted_ns = zip(*of_block, strict=True)
        rates = tuple(1e9 * count / ns for count, ns in zip(items, lasted_ns, strict=True))
        sums.append(BlockSum(index, alone, sum(items), sum(lasted_ns) / 1e9, rates))
    return sums


@dataclass(slots=True)
class Spent:
    """The kernel's counters of a slice in blocks of one kind, and the duration of these."""

    processor_ns: int = 0
    """Processor time."""
    lasted_ns: int = 0
    """Time from border to border."""

    def add(self, processor_ns: int, lasted_ns: int) -> None:
        """Count one block more."""
        self.processor_ns += processor_ns
        self.lasted_ns += lasted_ns


Over = Literal["rounds", "observations", "launches", "jobs"]


@dataclass(frozen=True, slots=True)
class Kept:
    """A share of a rate, of energy or of a whole, as it was measured."""

    value: float
    """Geometric mean."""
    interval: tuple[float, float] | None
    """95 % interval; null for too few, measured once or twice."""
    n: Whole
    """The number of its units."""
    over: Over = "rounds"
    """Its unit: rounds of blocks or observations of one launch, beside which another may differ; launches; jobs."""

    @property
    def within(self) -> bool:
        """True if its interval does not cover other launches."""
        return self.over in ("rounds", "observations")

    @property
    def is_unsure(self) -> bool:
        """True if the whole may be kept."""
        return self.interval is None or self.interval[0] <= 1 <= self.interval[1]

    def times(self, factor: float) -> Kept:
        """Return this share multiplied by `factor`."""
        ends = None if self.interval is None else (factor * self.interval[0], factor * self.interval[1])
        return Kept(factor * self.value, ends, self.n, self.over)

    def inverse(self) -> Kept:
        """Return 1 / the kept share."""
        ends = None if self.interval is None else (1 / self.interval[1], 1 / self.interval[0])
        return Kept(1 / self.value, ends, self.n, self.over)


def joint(parts: Sequence[Kept]) -> Kept:
    """Return the geometric mean of the kept shares of tenants of the same launches, of one or more.

    They share their launches, so their errors may be the same: the interval is as wide as theirs on average.
    """
    ends = [part.interval for part in parts if part.interval is not None]
    low, high = ([end[side] for end in ends] for side in (0, 1))
    interval = (geometric_mean(low), geometric_mean(high)) if len(ends) == len(parts) else None
    value = geometric_mean(part.value for part in parts)
    return Kept(value, interval, min(part.n for part in parts), parts[0].over)


def kept(blocks: Sequence[BlockSum]) -> Kept | None:
    """Return a tenant's kept share, by its blocks in the order of time; None if no solo block is next to a shared one.

    For each solo block: the mean log rate of the adjacent shared blocks minus the solo block's log rate, items / time;
    over the rounds their mean and its t interval (`over_rounds`).
    """
    logs = list(round_logs(blocks))
    return kept_over(logs) if logs else None


def kept_over(logs: Sequence[float]) -> Kept:
    """Return the kept share by its logarithm in each of at least one round (`over_rounds`)."""
    center, half = over_rounds(logs)
    return Kept(math.exp(center), None if half is None else ends_around(center, half), len(logs))


def ends_around(center: float, half: float) -> tuple[float, float]:
    """Return the ends of a ratio's interval, by the mean of its logarithms and half the width of their interval."""
    return math.exp(center - half), math.exp(center + half)


def warmed_up(times: Mapping[int, Sequence[float]]) -> int:
    """Return the first round that counts, by the times of a tenant's equal observations beside the others in each.

    A first round is warm-up while its median is longer than every later round's, up to a quarter of them all. Without
    a warm-up the first of n rounds is the longest with the chance 1 / n, and is lost then.
    """
    rounds = sorted(times)
    medians = [median(times[number]) for number in rounds]
    most = len(rounds) // WARM_UP_PART
    first = next((at for at in range(most) if medians[at] <= max(medians[at + 1 :])), most)
    return rounds[first] if rounds else 0


def over_rounds(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean of a value of each round, and half the width of its t interval (Student, 1908).

    From LEAST_FOR_LAG rounds on the interval is for n (1 - r) / (1 + r) rounds, r the correlation of each with the next
    (`lag_correlation`). Below LEAST_ROUNDS there is none.
    """
    if len(values) < LEAST_ROUNDS:
        return fmean(values), None
    error = stdev(values) / math.sqrt(len(values))
    wider = 1.0 if len(values) < LEAST_FOR_LAG else math.sqrt(variance_inflation(lag_correlation(values)))
    return fmean(values), t_975(len(values) - 1) * error * wider


def repeats_needed(spread: float, room: float, least: int, most: int, sides: int = 1) -> int | None:
    """Return the number of repeats, from `least` to `most`, that bring half a mean's t interval below `room`.

    `spread` is the standard deviation of a repeat, estimated by `sides` sides of equal repeats together. None if `most`
    would not do.
    """
    if room <= 0:
        return None
    enough = math.ceil(min(most + 1, (NORMAL * spread / room) ** 2))
    counts = range(max(least, enough), most + 1)
    return next((n for n in counts if t_975(sides * (n - 1)) * spread / math.sqrt(n) < room), None)


def round_logs(blocks: Sequence[BlockSum]) -> Iterator[float]:
    """Yield the logarithm of the kept share for each solo block with a shared block up to MOST_APART blocks away."""
    together = {block.index: block.log_rate for block in blocks if not block.alone}
    reach = range(1, MOST_APART + 1)
    for block in (block for block in blocks if block.alone):
        nearest = (next((at for by in reach if (at := block.index + sign * by) in together), None) for sign in (-1, 1))
        beside = [together[index] for index in nearest if index is not None]
        if beside:
            yield fmean(beside) - block.log_rate
