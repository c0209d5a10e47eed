"""The observations of one tenant of one launch: their median with its exact interval, and their spread.

Standard library only until something is described: the runner asks for intervals while tenants are timed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

MAD_TO_SD = 1.4826
INTERVAL_OBSERVATIONS = 6
"""Of fewer the median has no 95 % interval."""


@dataclass(frozen=True, slots=True)
class Description:
    """Of `n` rates in items per second, and of the seconds they took."""

    n: int
    """Kept observations."""
    median: float
    """Median rate."""
    interval: tuple[float, float] | None
    """Exact (order-statistic) 95 % interval of the median; null below six observations."""
    robust_spread: float
    """1.4826 MAD / median."""
    iqr: float
    """Distance of the quartiles."""
    best: float
    """The highest rate."""
    p95_s: float
    """95 % quantile of the time of an observation."""
    mean: float
    """Mean rate."""
    sd: float
    """Standard deviation of the rates (the population's)."""
    min: float
    """The lowest rate."""
    max: float
    """The highest rate."""


@functools.lru_cache(maxsize=64)
def median_interval_ranks(n: int) -> tuple[int, int] | None:
    """Return the 1-based ranks between which the median lies with at least 95 %, or None where n is too small.

    The narrowest symmetric pair (r, n + 1 - r): it misses the median where fewer than r observations lie on one side,
    of which the chance is 2 P(binomial(n, 1/2) < r) (David and Nagaraja, Order Statistics, 7.1). Counted in whole
    numbers, so exact: `below` of the 2^n equally likely patterns have fewer than `rank` + 1 on the one side.
    """
    rank, ways, below = 0, 1, 1
    while 40 * below <= 1 << n:
        rank += 1
        ways = ways * (n + 1 - rank) // rank
        below += ways
    return (rank, n + 1 - rank) if rank else None


def relative_half_width(ordered: Sequence[float]) -> float | None:
    """Return half the width of the median's interval over the median; None where there is no interval.

    `ordered`: rates, ascending, none below 0; of a median of 0 there is none either.
    """
    ranks, half = median_interval_ranks(len(ordered)), len(ordered) // 2
    if ranks is None:
        return None
    median = (ordered[half] + ordered[~half]) / 2
    return (ordered[ranks[1] - 1] - ordered[ranks[0] - 1]) / 2 / median if median > 0 else None


def describe(items: Sequence[float], seconds: Sequence[float]) -> Description:
    """Describe observations of `items` each in `seconds` each. Raises ValueError for none, or one without a rate."""
    # Not before: the runner imports this module while it may not be slow.
    import numpy as np

    if not items or len(items) != len(seconds):
        raise ValueError(f"{len(items)} counts of items and {len(seconds)} durations")
    if not all(math.isfinite(value) and value > 0 for value in (*items, *seconds)):
        raise ValueError("a count of items or a duration that is no positive number")
    durations = np.asarray(seconds, float)
    rates = np.sort(np.asarray(items, float) / durations)
    median = float(np.median(rates))
    ranks = median_interval_ranks(len(rates))
    q25, q75 = np.quantile(rates, [0.25, 0.75])
    return Description(
        n=len(rates),
        median=median,
        interval=(float(rates[ranks[0] - 1]), float(rates[ranks[1] - 1])) if ranks else None,
        robust_spread=MAD_TO_SD * float(np.median(np.abs(rates - median))) / median,
        iqr=float(q75 - q25),
        best=float(rates[-1]),
        p95_s=float(np.quantile(durations, 0.95)),
        mean=float(rates.mean()),
        sd=float(rates.std()),
        min=float(rates[0]),
        max=float(rates[-1]),
    )
