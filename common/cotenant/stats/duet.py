"""Is B slower than A? Both took turns in the same slices within one launch: the ratio of their rates, and a verdict.

Duet benchmarking: Bulej et al., ICPE 2020. Both meet the same hour, host and neighbours, which drop out of the ratio.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from cotenant.stats.kept import (
    LEAST_ROUNDS,
    NORMAL,
    BlockSum,
    ends_around,
    over_rounds,
    repeats_needed,
    t_975,
    widening,
)
from cotenant.stats.verdict import LEAST_MARGIN, Verdict, verdict_of

TRIMMED = 0.2
"""The part of the rounds that is left out at each end."""
BETWEEN_PROCESSES = 0.01
"""The standard deviation of the ratio of two processes of one program, whose places in memory differ: that of a plain
loop of Python over ten launches. Of programs that live on their caches it is several times as much."""

MOST_S = 3600.0
"""A difference that needs longer is smaller than the difference of two launches."""
LEAST_LAUNCHES, MOST_LAUNCHES = 3, 50
"""The fewest launches with an interval, and the most that anybody would make for a verdict."""


@dataclass(frozen=True, slots=True)
class DuetRatio:
    """The rate of B over that of A, over the rounds of one launch."""

    value: float
    """Geometric mean over the rounds, without a fifth of them at each end, of the ratio of the median rates."""
    interval: tuple[float, float] | None
    """95 % interval over the rounds of this launch, wider by 1 % between processes of one program, which also holds the
    ratio of all items over all time; null below three rounds."""
    rounds: int
    """How many rounds it goes over."""
    verdict: str
    """`SLOWER`, `FASTER` or `SAME`, where the whole interval is beyond the margin, or within; else `UNCLEAR`."""
    settled_s: float | None = None
    """For an `UNCLEAR` one: about how long a launch would settle it at this spread; null where an hour would not."""
    margin: float = LEAST_MARGIN
    """Up to such a relative difference both are the same."""


@dataclass(frozen=True, slots=True)
class DuetOverLaunches:
    """The rate of B over that of A, over launches, each with processes of its own."""

    value: float
    """Geometric mean of the launches' ratios."""
    interval: tuple[float, float] | None
    """95 % t interval (Student, 1908) over the launches; None below three."""
    launches: int
    verdict: Verdict
    settled: int | None = None
    """For an UNCLEAR one: about how many launches would settle it at this spread; None where fifty would not."""


def ratio_over_launches(ratios: Sequence[float]) -> DuetOverLaunches:
    """Return B over A over launches, of which there is one at least.

    Processes of one program differ by their places in memory, as long as they live, and chance draws these anew in each
    launch (Mytkowicz et al., Producing Wrong Data Without Doing Anything Obviously Wrong, ASPLOS 2009; Kalibera and
    Jones, Rigorous Benchmarking in Reasonable Time, ISMM 2013).
    """
    logs = list(map(math.log, ratios))
    center, count = fmean(logs), len(logs)
    if count < LEAST_LAUNCHES:
        return DuetOverLaunches(math.exp(center), None, count, Verdict.UNCLEAR)
    spread = stdev(logs)
    half = t_975(count - 1) * spread / math.sqrt(count)
    verdict = verdict_of(center - half, center + half, LEAST_MARGIN)
    settled = None
    if verdict is Verdict.UNCLEAR:
        settled = repeats_needed(spread, _distance(center), count + 1, MOST_LAUNCHES)
    return DuetOverLaunches(math.exp(center), ends_around(center, half), count, verdict, settled)


Sides = Sequence[tuple[Sequence[BlockSum], Sequence[BlockSum]]]
"""For each slice the blocks of A and those of B."""


def ratio_of(slices: Sides, rounds: Mapping[int, int], round_s: float) -> DuetRatio | None:
    """Return B over A; None where no round has blocks of both.

    `rounds` names the round of each block by its index, and `round_s` is the length of one. Of each round and slice the
    logarithm of B's rate over A's, the mean over the slices: once of their blocks' median rates, and once of items over
    time. A busy host stops a process for milliseconds, here and there, which moves items over time far and medians
    little: so it is the trimmed mean of the medians (`trimmed_over_rounds`). But a side's own rare pauses are in no
    median. So the interval also reaches to the mean of items over time; and where the medians lie outside that mean's
    own interval (`over_rounds`), it stands in their place. Both intervals are widened by BETWEEN_PROCESSES, which no
    number of rounds takes away, but several slices do, each with processes of its own.
    """
    logs = list(_logs(slices, rounds))
    if not logs:
        return None
    medians, sums = zip(*logs, strict=True)
    mean, half_of_mean = over_rounds(sums)
    if half_of_mean is None:
        return DuetRatio(math.exp(mean), None, len(logs), Verdict.UNCLEAR)
    center, half = trimmed_over_rounds(medians)
    if abs(center - mean) > half_of_mean:
        center, half = mean, half_of_mean
    between = NORMAL * BETWEEN_PROCESSES / math.sqrt(len(slices))
    reach = math.hypot(half, between)
    low, high = min(mean, center - reach), max(mean, center + reach)
    verdict = verdict_of(low, high, LEAST_MARGIN)
    settled_s = _settled_s(center, half, between, len(logs), round_s) if verdict is Verdict.UNCLEAR else None
    return DuetRatio(math.exp(center), (math.exp(low), math.exp(high)), len(logs), verdict, settled_s)


def trimmed_over_rounds(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of three rounds or more without a fifth of them at each end, and half the width of its 95 % t
    interval (Tukey and McLaughlin, Sankhya A 25, 1963), widened as in `over_rounds`."""
    cut = int(TRIMMED * len(values))
    ordered, kept = sorted(values), len(values) - 2 * cut
    low, high = ordered[cut], ordered[cut + kept - 1]
    error = stdev(min(max(value, low), high) for value in values) * math.sqrt(len(values)) / kept
    return fmean(ordered[cut : cut + kept]), t_975(kept - 1) * error * widening(values)


def together(tenants: Sequence[Sequence[BlockSum]]) -> Sequence[BlockSum]:
    """Return the blocks of tenants that run at the same time as those of one, whose rate is the sum of theirs: those
    that each of them has."""
    if len(tenants) == 1:
        return tenants[0]
    of_tenants = [{block.index: block for block in blocks} for blocks in tenants]
    common = sorted(set.intersection(*map(set, of_tenants)))
    return [_joined(index, [blocks[index] for blocks in of_tenants]) for index in common]


def _joined(index: int, blocks: Sequence[BlockSum]) -> BlockSum:
    rate, median_rate = sum(of.items / of.seconds for of in blocks), sum(of.median_rate for of in blocks)
    return BlockSum(index, False, rate, 1.0, median_rate)


def _settled_s(center: float, half: float, between: float, rounds: int, round_s: float) -> float | None:
    """Return how long as many rounds take as bring the half-width below the distance to the nearer border; None where
    an hour would not, or the difference `between` processes is as large."""
    room = math.sqrt(max(0.0, _distance(center) ** 2 - between**2))
    spread = half * math.sqrt(rounds) / t_975(rounds - 1)
    needed = repeats_needed(spread, room, max(rounds + 1, LEAST_ROUNDS), int(MOST_S / round_s))
    return None if needed is None else needed * round_s


def _distance(center: float) -> float:
    """Return how far a logarithm lies from the nearer end of the margin."""
    return abs(math.log1p(LEAST_MARGIN) - abs(center))


def _logs(slices: Sides, rounds: Mapping[int, int]) -> Iterator[tuple[float, float]]:
    """Yield, of each round with blocks of both sides, the logarithms of B's rate over A's: of medians, of sums."""
    of_slices = [tuple(_log_rates(blocks, rounds) for blocks in sides) for sides in slices]
    for number in sorted(set(rounds.values())):
        both = [(a[number], b[number]) for a, b in of_slices if number in a and number in b]
        if both:
            medians, sums = (fmean(of_b[at] - of_a[at] for of_a, of_b in both) for at in (0, 1))
            yield medians, sums


def _log_rates(blocks: Sequence[BlockSum], rounds: Mapping[int, int]) -> dict[int, tuple[float, float]]:
    """Return the logarithms of a side's rates in each round: the mean of its blocks' medians, and items over time."""
    of_rounds = defaultdict[int, list[BlockSum]](list)
    for block in blocks:
        of_rounds[rounds[block.index]].append(block)
    return {
        number: (
            fmean(math.log(block.median_rate) for block in of),
            math.log(sum(block.items for block in of) / sum(block.seconds for block in of)),
        )
        for number, of in of_rounds.items()
    }
