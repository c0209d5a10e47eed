"""The observations of one tenant of one launch: their median with its interval, and their spread.

Standard library only until something is described: the runner asks for intervals while tenants are timed.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from cotenant.decoding import Measured, Whole
from cotenant.stats.correlation import effective_count, scaled_rank

MAD_TO_SD = 1.4826
INTERVAL_OBSERVATIONS = 6
"""With fewer observations the median has no 95 % interval."""


@dataclass(frozen=True, slots=True)
class Description:
    """Describes `n` rates in items per second, and the seconds they took."""

    n: Whole
    """Kept observations."""
    median: Measured
    """Median rate."""
    interval: tuple[Measured, Measured] | None
    """Order-statistic 95 % interval of the median; null below six observations."""
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
    """Return the 1-based ranks between which the median lies with at least 95 %, or None if n is too small.

    The narrowest symmetric pair (r, n + 1 - r): it misses the median if fewer than r observations lie on one side, with
    the chance 2 P(binomial(n, 1/2) < r) (David and Nagaraja, Order Statistics, 7.1). Counting in whole numbers is
    exact: `below` of the 2^n equally likely patterns have fewer than `rank` + 1 on the one side.
    """
    rank, ways, below = 0, 1, 1
    while 40 * below <= 1 << n:
        rank += 1
        ways = ways * (n + 1 - rank) // rank
        below += ways
    return (rank, n + 1 - rank) if rank else None


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the median of `values`, in the order of their making; None for fewer than six.

    It is exact for independent values. If consecutive values are alike, the ranks are those of the equivalent number
    of independent values (`effective_count`), but of at least six, scaled to `values`.
    """
    n = len(values)
    if n < INTERVAL_OBSERVATIONS:
        return None
    worth = max(INTERVAL_OBSERVATIONS, math.floor(effective_count(values)))
    ranks = median_interval_ranks(worth)
    assert ranks is not None
    low, ordered = scaled_rank(ranks[0], worth, n), sorted(values)
    return ordered[low - 1], ordered[n - low]


def relative_half_width(rates: Sequence[float]) -> float | None:
    """Return half the width of the median's interval over the median; None if there is no interval.

    `rates` are in the order of their making, none below 0. None also for a median of 0.
    """
    if (interval := median_interval(rates)) is None or (median := statistics.median(rates)) <= 0:
        return None
    return (interval[1] - interval[0]) / 2 / median


def describe(items: Sequence[float], seconds: Sequence[float]) -> Description:
    """Describe observations of `items` each in `seconds` each. Raises ValueError for none, or one without a rate."""
    # A late import: the runner imports this module at a time when it must be fast.
    import numpy as np

    if not items or len(items) != len(seconds):
        raise ValueError(f"{len(items)} counts of items and {len(seconds)} durations")
    if not all(math.isfinite(value) and value > 0 for value in (*items, *seconds)):
        raise ValueError("a count of items or a duration that is no positive number")
    durations = np.asarray(seconds, float)
    rates = np.asarray(items, float) / durations
    median = float(np.median(rates))
    q25, q75 = np.quantile(rates, [0.25, 0.75])
    return Description(
        n=len(rates),
        median=median,
        interval=median_interval(rates.tolist()),
        robust_spread=MAD_TO_SD * float(np.median(np.abs(rates - median))) / median,
        iqr=float(q75 - q25),
        best=float(rates.max()),
        p95_s=float(np.quantile(durations, 0.95)),
        mean=float(rates.mean()),
        sd=float(rates.std()),
        min=float(rates.min()),
        max=float(rates.max()),
    )
