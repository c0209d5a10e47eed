"""Compares the rates of A and B, which took turns in the same slices: their ratio, and a verdict.

Duet benchmarking: Bulej et al., ICPE 2020. Both meet the same hour, host and neighbours, which drop out of the ratio.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles, stdev

from cotenant.decoding import Whole
from cotenant.stats.kept import (
    LEAST_ROUNDS,
    NORMAL,
    BlockSum,
    over_rounds,
    repeats_needed,
)
from cotenant.stats.quantiles import t_975
from cotenant.stats.verdict import LEAST_MARGIN, Verdict, verdict_of

BETWEEN_PROCESSES = 0.014
"""The standard deviation of the ratio of two processes of one program, as their places in memory differ: measured for
a plain loop of Python over fourteen launches. Programs that depend on caches have several times as much."""
TRIMMED = 0.2
"""The part of the rounds left out at each end."""
GROUPS = 20
"""The most groups of rounds, each of which the jackknife leaves out once."""

MOST_S = 3600.0
"""A difference that needs longer is smaller than the difference of two launches."""
LEAST_LAUNCHES, MOST_LAUNCHES = 3, 50
"""The fewest launches with an interval, and the most that a verdict is worth."""


@dataclass(frozen=True, slots=True)
class DuetRatio:
    """The rate of B over the rate of A, over the rounds of one launch."""

    value: float
    """`robust`; or `mean`, if `robust` lies outside the 95 % interval of the mean."""
    interval: tuple[float, float] | None
    """95 % interval over the rounds of this launch, wider by 1.4 % between processes of one program, which also holds
    `mean`; null below three rounds."""
    rounds: Whole
    """The number of rounds."""
    verdict: str
    """`SLOWER`, `FASTER` or `SAME`, if the whole interval is beyond the margin, or within; else `UNCLEAR`."""
    settled_s: float | None = None
    """For an `UNCLEAR` one: how long a launch would settle it at this spread; null if more than an hour."""
    margin: float = LEAST_MARGIN
    """Both are the same up to this relative difference."""
    robust: float | None = None
    """The ratio by median rates, a trimmed mean over rounds, and the ratio by the rates that the fastest tenth of the
    observations reach, weighted by their precision; null in old records without one."""
    mean: float | None = None
    """The geometric mean over the rounds of the ratio of all items over all time; null likewise."""

    @property
    def estimates(self) -> tuple[float, float]:
        """The robust estimate, and the mean; in an old record its only one."""
        return self.robust or self.value, self.mean or self.value


@dataclass(frozen=True, slots=True)
class DuetOverLaunches:
    """The rate of B over the rate of A, over launches, each with processes of its own."""

    value: float
    """Geometric mean of the launches' `robust`; or of their `mean`, if the former is outside the interval of the
    latter."""
    interval: tuple[float, float] | None
    """95 % t interval (Student, 1908) over the launches, which also holds the mean of their `mean`s; None below
    three."""
    launches: int
    verdict: Verdict
    settled: int | None = None
    """About the number of launches that would settle an UNCLEAR verdict at this spread; None if fifty would not."""


def ratio_over_launches(estimates: Sequence[tuple[float, float]]) -> DuetOverLaunches:
    """Return B over A over launches, by the `DuetRatio.estimates` of each of at least one launch.

    Processes of one program differ by their places in memory, as long as they live, and chance draws these again in
    each launch (Mytkowicz et al., Producing Wrong Data Without Doing Anything Obviously Wrong, ASPLOS 2009; Kalibera
    and Jones, Rigorous Benchmarking in Reasonable Time, ISMM 2013).
    """
    logs, means = ([math.log(ratio) for ratio in ratios] for ratios in zip(*estimates, strict=True))
    count = len(logs)
    if count < LEAST_LAUNCHES:
        return DuetOverLaunches(math.exp(fmean(logs)), None, count, Verdict.UNCLEAR)
    width = t_975(count - 1) / math.sqrt(count)
    center, half, low, high = _joint(fmean(logs), width * stdev(logs), fmean(means), width * stdev(means))
    verdict, settled = verdict_of(low, high, LEAST_MARGIN), None
    if verdict is Verdict.UNCLEAR:
        settled = repeats_needed(half / width, _distance(center), count + 1, MOST_LAUNCHES)
    return DuetOverLaunches(math.exp(center), (math.exp(low), math.exp(high)), count, verdict, settled)


Sides = Sequence[tuple[Sequence[BlockSum], Sequence[BlockSum]]]
"""For each slice the blocks of A and the blocks of B."""
Met = Mapping[int, tuple[Sequence[BlockSum], Sequence[BlockSum]]]
"""The blocks of A and of B in one round, by the number of a slice that has blocks of both."""


def ratio_of(slices: Sides, rounds: Mapping[int, int], round_s: float) -> DuetRatio | None:
    """Return B over A; None if no round has blocks of both.

    `rounds` names the round of each block by its index, and `round_s` is the length of one. A busy host makes
    observations longer, never shorter: for milliseconds here and there, or for half of the time. The first kind leaves
    medians alone, and the second the fastest tenth: so there are two estimates (`_log_paired`, `_log_fast`), weighted
    by their precision. But a side's own pauses may be in neither. So the interval also reaches to the mean of items
    over time; and if that mean's own interval (`over_rounds`) excludes the estimate, the mean replaces it. Both are
    widened by BETWEEN_PROCESSES, which no number of rounds removes, but several slices do, each with processes of its
    own.
    """
    met = [of_round for of_round in _by_round(slices, rounds) if of_round]
    if not met:
        return None
    (robust, half_of_robust), (mean, half_of_mean) = _robust(met), over_rounds(list(map(_log_mean, met)))
    both = {"robust": math.exp(robust), "mean": math.exp(mean)}
    if half_of_robust is None or half_of_mean is None:
        return DuetRatio(math.exp(robust), None, len(met), Verdict.UNCLEAR, **both)
    between = NORMAL * BETWEEN_PROCESSES / math.sqrt(len(slices))
    center, half, low, high = _joint(robust, half_of_robust, mean, half_of_mean, between)
    verdict = verdict_of(low, high, LEAST_MARGIN)
    settled_s = _settled_s(center, half, between, len(met), round_s) if verdict is Verdict.UNCLEAR else None
    return DuetRatio(math.exp(center), (math.exp(low), math.exp(high)), len(met), verdict, settled_s, **both)


def _joint(
    robust: float, half: float, mean: float, half_of_mean: float, between: float = 0.0
) -> tuple[float, float, float, float]:
    """Return the estimate, half of its interval, and the ends of an interval that is widened by `between` and includes
    the mean: the robust estimate, or the mean if half of the mean's interval does not reach to the former."""
    if abs(robust - mean) > half_of_mean:
        robust, half = mean, half_of_mean
    reach = math.hypot(half, between)
    return robust, half, min(mean, robust - reach), max(mean, robust + reach)


def _settled_s(center: float, half: float, between: float, rounds: int, round_s: float) -> float | None:
    """Return the time of the rounds that bring the half-width below the distance to the nearer border; None if an hour
    would not, or the difference `between` processes is as large as that distance."""
    room = math.sqrt(max(0.0, _distance(center) ** 2 - between**2))
    spread = half * math.sqrt(rounds) / t_975(rounds - 1)
    needed = repeats_needed(spread, room, rounds + 1, int(MOST_S / round_s))
    return None if needed is None else needed * round_s


def _distance(center: float) -> float:
    """Return the distance of a logarithm from the nearer end of the margin."""
    return abs(math.log1p(LEAST_MARGIN) - abs(center))


def _by_round(slices: Sides, rounds: Mapping[int, int]) -> Iterator[Met]:
    found: dict[int, dict[int, tuple[list[BlockSum], list[BlockSum]]]] = defaultdict(
        lambda: defaultdict(lambda: ([], []))
    )
    for place, sides in enumerate(slices):
        for side, blocks in enumerate(sides):
            for block in blocks:
                found[rounds[block.index]][place][side].append(block)
    for _, of_round in sorted(found.items()):
        yield {place: (a, b) for place, (a, b) in of_round.items() if a and b}


def _log_mean(of_round: Met) -> float:
    """Return the logarithm of B's items over time in one round over A's, the mean over the slices."""
    return fmean(_log_rate(b) - _log_rate(a) for a, b in of_round.values())


def _log_rate(blocks: Sequence[BlockSum]) -> float:
    return math.log(sum(block.items for block in blocks) / sum(block.seconds for block in blocks))


def _robust(met: Sequence[Met]) -> tuple[float, float | None]:
    """Return both robust estimates as one, weighted by their precision, and half the width of its 95 % t interval; None
    below three rounds.

    The precision is a jackknife's: up to GROUPS groups of consecutive rounds are left out, one at a time (Tukey, 1958).
    """
    groups = min(GROUPS, len(met))
    whole = (_log_paired(met), _log_fast(met))
    if groups < LEAST_ROUNDS:
        return fmean(whole), None
    left = [[blocks for at, blocks in enumerate(met) if at * groups // len(met) != group] for group in range(groups)]
    without = [(_log_paired(rest), _log_fast(rest)) for rest in left]
    spreads = [
        sum((value - center) ** 2 for value in values)
        for values, center in zip(zip(*without, strict=True), whole, strict=True)
    ]
    paired = 0.5 if not sum(spreads) else spreads[1] / sum(spreads)
    estimate, *others = (paired * one + (1 - paired) * other for one, other in (whole, *without))
    error = math.sqrt((groups - 1) / groups * sum((other - estimate) ** 2 for other in others))
    return estimate, t_975(groups - 1) * error


def _log_paired(met: Sequence[Met]) -> float:
    """Return the mean over rounds, without a fifth of them at each end (Tukey and McLaughlin, Sankhya A 25, 1963), of
    the logarithm of B's rate over A's, the mean over the slices; a rate is a block's median."""
    logs = sorted(fmean(_log_median(b) - _log_median(a) for a, b in of_round.values()) for of_round in met)
    cut = int(TRIMMED * len(logs))
    return fmean(logs[cut : len(logs) - cut])


def _log_median(blocks: Sequence[BlockSum]) -> float:
    return fmean(math.log(median(block.rates)) for block in blocks)


def _log_fast(met: Sequence[Met]) -> float:
    """Return the logarithm of the rate that B's fastest tenth of observations reach over A's, the mean over the slices.

    It is steadier than the minimum that Chen and Revels propose (Robust benchmarking in noisy environments, 2016).
    """
    rates: dict[int, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for of_round in met:
        for place, sides in of_round.items():
            for gathered, blocks in zip(rates[place], sides, strict=True):
                gathered.extend(rate for block in blocks for rate in block.rates)
    return fmean(math.log(_reached(b) / _reached(a)) for a, b in rates.values())


def _reached(rates: Sequence[float]) -> float:
    return quantiles(rates, n=10, method="inclusive")[-1] if len(rates) > 1 else rates[0]
