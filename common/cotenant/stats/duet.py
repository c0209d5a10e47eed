"""Is B slower than A? Both took turns in the same slices within one launch: the ratio of their rates, and a verdict.

Duet benchmarking: Bulej et al., ICPE 2020. Both meet the same hour, host and neighbours, which drop out of the ratio.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from cotenant.stats.correlation import lag_correlation, variance_inflation
from cotenant.stats.kept import LEAST_FOR_LAG, LEAST_ROUNDS, BlockSum, ends_around, over_rounds, repeats_needed, t_975
from cotenant.stats.verdict import LEAST_MARGIN, Verdict, verdict_of

TRIMMED = 0.2
"""The part of the rounds that is left out at each end."""

MOST_S = 3600.0
"""A difference that needs longer is smaller than the difference of two launches."""


@dataclass(frozen=True, slots=True)
class DuetRatio:
    """The rate of B over that of A, over the rounds of one launch."""

    value: float
    """Trimmed geometric mean over the rounds, of each over the slices."""
    interval: tuple[float, float] | None
    """95 % t interval over the rounds of this launch; null below three."""
    rounds: int
    """How many rounds it goes over."""
    verdict: str
    """`SLOWER`, `FASTER` or `SAME`, where the whole interval is beyond the margin, or within; else `UNCLEAR`."""
    settled_s: float | None = None
    """For an `UNCLEAR` one: about how long a launch would settle it at this spread; null where an hour would not."""
    margin: float = LEAST_MARGIN
    """Up to such a relative difference both are the same."""


Sides = Sequence[tuple[Sequence[BlockSum], Sequence[BlockSum]]]
"""For each slice the blocks of A and those of B."""


def ratio_of(slices: Sides, rounds: Mapping[int, int], round_s: float) -> DuetRatio | None:
    """Return B over A; None where no round has blocks of both.

    `rounds` names the round of each block by its index, and `round_s` is the length of one. Of each round and slice the
    logarithm of B's items / time over A's; of these the mean over the slices, over the rounds their trimmed mean and
    its t interval (`trimmed_over_rounds`).
    """
    logs = list(_logs(slices, rounds))
    if not logs:
        return None
    center, half = trimmed_over_rounds(logs)
    if half is None:
        return DuetRatio(math.exp(center), None, len(logs), Verdict.UNCLEAR)
    verdict = verdict_of(center - half, center + half, LEAST_MARGIN)
    settled_s = _settled_s(center, half, len(logs), round_s) if verdict is Verdict.UNCLEAR else None
    return DuetRatio(math.exp(center), ends_around(center, half), len(logs), verdict, settled_s)


def trimmed_over_rounds(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean of the values without a fifth of them at each end, and half the width of its t interval (Tukey
    and McLaughlin, Sankhya A 25, 1963).

    A neighbour that comes or goes within a round moves it in one direction as often as in the other, and far. Where the
    mean of all rounds lies outside this interval, one side alone has rare and long pauses, which count: then it is that
    mean, and its interval (`over_rounds`).
    """
    mean, half_of_all = over_rounds(values)
    cut = int(TRIMMED * len(values))
    if half_of_all is None or not cut:
        return mean, half_of_all
    ordered = sorted(values)
    low, high = ordered[cut], ordered[-cut - 1]
    center = fmean(ordered[cut:-cut])
    kept = len(values) - 2 * cut
    error = stdev(min(max(value, low), high) for value in values) * math.sqrt(len(values)) / kept
    if len(values) >= LEAST_FOR_LAG:
        error *= math.sqrt(variance_inflation(lag_correlation(values)))
    half = t_975(kept - 1) * error
    return (center, half) if abs(mean - center) <= half else (mean, half_of_all)


def together(tenants: Sequence[Sequence[BlockSum]]) -> Sequence[BlockSum]:
    """Return the blocks of tenants that run at the same time as those of one, whose rate is the sum of theirs: those
    that each of them has."""
    if len(tenants) == 1:
        return tenants[0]
    rates = [{block.index: block.items / block.seconds for block in blocks} for blocks in tenants]
    common = sorted(set.intersection(*map(set, rates)))
    return [BlockSum(index, False, sum(of[index] for of in rates), 1.0) for index in common]


def _settled_s(center: float, half: float, rounds: int, round_s: float) -> float | None:
    """Return how long as many rounds take as bring the half-width below the distance to the nearer border."""
    room = abs(math.log1p(LEAST_MARGIN) - abs(center))
    spread = half * math.sqrt(rounds) / t_975(rounds - 1)
    needed = repeats_needed(spread, room, max(rounds + 1, LEAST_ROUNDS), int(MOST_S / round_s))
    return None if needed is None else needed * round_s


def _logs(slices: Sides, rounds: Mapping[int, int]) -> Iterator[float]:
    rates = [tuple(_rates(blocks, rounds) for blocks in sides) for sides in slices]
    for number in sorted(set(rounds.values())):
        both = [(a[number], b[number]) for a, b in rates if number in a and number in b]
        if both:
            yield fmean(math.log(of_b / of_a) for of_a, of_b in both)


def _rates(blocks: Sequence[BlockSum], rounds: Mapping[int, int]) -> dict[int, float]:
    """Return the items per second of each round."""
    items, seconds = defaultdict[int, float](float), defaultdict[int, float](float)
    for block in blocks:
        items[rounds[block.index]] += block.items
        seconds[rounds[block.index]] += block.seconds
    return {number: items[number] / seconds[number] for number in items}
