"""Judges the observations of one launch: their drift, a slow start, outliers, and outliers whose input came late."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from cotenant.stats.correlation import correlation_of_means, lag_correlation, variance_inflation

MODIFIED_Z = 0.6745
FAR_OFF = 14.8
UNLIKELY = 0.01
STRETCHES = 24
"""A trend is sought among the medians of equal parts of a launch, of this many or of fewer than twice as many:
observations of one second share their moment, and a hundred of them show little more of a trend than one."""
PARABOLA = 3
"""The parameters of a parabola."""
LEAST_DISTANCE = 0.01
"""A spike's least distance, as a part of the median: if observations agree to a millionth, a thousandth is far off, and
does not matter."""
MOSTLY = 0.5
ROUNDED = 5
"""Decimals of a relative value: beyond them are a clock's nanoseconds, which are no noise."""


class Drift(NamedTuple):
    """The chance `p` of such an order in a launch without a trend, and the `change` over the launch / median."""

    p: float
    change: float


def mann_kendall(values: Sequence[float], correlation: float = 0.0) -> float:
    """Return the two-sided p of Mann and Kendall's test of no trend, by its normal approximation, corrected for ties.

    Kendall, Rank Correlation Methods (1975), ch. 4. For fewer than three values, or equal ones, it is 1. A lag-1
    `correlation` of the rest without the trend widens the score's variance (Yue and Wang, 2004).
    """
    series = np.asarray(values, float)
    n = len(series)
    later, earlier = np.tril_indices(n, -1)
    score = float(np.sign(series[later] - series[earlier]).sum())
    _, ties = np.unique(series, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if n < 3 or variance <= 0:
        return 1.0
    # The score moves in steps of two: half a step of continuity.
    z = max(0.0, abs(score) - 1) / math.sqrt(variance * variance_inflation(correlation))
    return math.erfc(z / math.sqrt(2))


def theil_sen(values: Sequence[float]) -> float:
    """Return the median slope per step between all pairs (Sen, 1968). Raises ValueError for fewer than two values."""
    series = np.asarray(values, float)
    if len(series) < 2:
        raise ValueError(f"a slope through {len(series)} values")
    later, earlier = np.tril_indices(len(series), -1)
    return float(np.median((series[later] - series[earlier]) / (later - earlier)))


def drift(values: Sequence[float]) -> Drift:
    """Return the trend in positive values, in the order of their making. Raises ValueError for fewer than two.

    Values after the last whole stretch are left out.
    """
    size = max(len(values) // STRETCHES, 1)
    count = len(values) // size
    stretches: list[float] = np.median(np.reshape(values[: count * size], (count, size)), axis=1).tolist()
    change = theil_sen(stretches) * (len(values) - 1) / size / float(np.median(stretches))
    correlation = correlation_of_means(_correlation_around_trend(values), size)
    return Drift(mann_kendall(stretches, correlation), change)


def behind_warm_up(rates: Sequence[float], skipped: int) -> list[float]:
    """Return the rates without the first `skipped` ones before any that reaches the least later rate.

    A warm-up is slower than the rest; skipped rates that are as fast belong to the trend of a launch.
    """
    least = min(rates[skipped:], default=0.0)
    warm = next((at for at, rate in enumerate(rates[:skipped]) if rate >= least), skipped)
    return [*rates[warm:]]


def _correlation_around_trend(values: Sequence[float]) -> float:
    """Return the lag-1 correlation of the residuals of positive values from a parabola.

    A trend makes neighbours alike as well, and few launches drift along a straight line. 0 for fewer than five values,
    of which a parabola leaves too little.
    """
    series = np.asarray(values, float)
    if len(series) < 5:
        return 0.0
    relative, places = series / np.median(series), np.linspace(-1, 1, len(series))
    rest = relative - np.polyval(np.polyfit(places, relative, 2), places)
    return lag_correlation(np.round(rest, ROUNDED).tolist(), PARABOLA)


def slow_start(values: Sequence[float]) -> int:
    """Return the number of first values that are all larger than every later one, beyond chance.

    In n values in random order the first k are the k largest with the chance 1 / C(n, k). The largest k up to a quarter
    of n with a chance below 1 % counts; a launch without a slow start has 0.
    """
    n = len(values)
    largest = list(accumulate(reversed(values), max))
    smallest = accumulate(values[: n // 4], min)
    # The largest k has the least chance. Of more than 100 values, even a single one has a chance below 1 %.
    most = max((k for k, least in enumerate(smallest, 1) if least > largest[n - k - 1]), default=0)
    return most if n * UNLIKELY > 1 or math.comb(n, most) * UNLIKELY > 1 else 0


def outliers(values: Sequence[float]) -> tuple[int, ...]:
    """Return the indices of values whose modified z-score 0.6745 |x - median| / MAD is above 14.8.

    Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993); their 3.5 would flag ordinary jitter. If more
    than half of the values are equal there is no such scale, and nothing is an outlier.
    """
    series = np.asarray(values, float)
    if not len(series):
        return ()
    distance = np.abs(series - np.median(series))
    scale = float(np.median(distance))
    if not scale:
        return ()
    return tuple(int(index) for index in np.flatnonzero(MODIFIED_Z * distance / scale > FAR_OFF))


class Spikes(NamedTuple):
    """Indices of outliers: the ones that came `late` because of their wait, and all others."""

    late: tuple[int, ...]
    others: tuple[int, ...]


def spikes(values: Sequence[float], waits: Sequence[float]) -> Spikes:
    """Return the outliers among `values` (seconds), given the part of each that was spent waiting for input in `waits`.

    A value is late if at least half of its time beyond the median is wait beyond the median wait.
    """
    series, waited = np.asarray(values, float), np.asarray(waits, float)
    if not len(series):
        return Spikes((), ())
    middle = float(np.median(series))
    over, waited_over = series - middle, waited - np.median(waited)
    far = [index for index in outliers(values) if abs(over[index]) >= LEAST_DISTANCE * middle]
    late = tuple(index for index in far if 0 < MOSTLY * over[index] <= waited_over[index])
    return Spikes(late, tuple(index for index in far if index not in late))
