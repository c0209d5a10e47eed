"""Whether the observations of one launch drift, and which of them stand far off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MODIFIED_Z = 0.6745
FAR_OFF = 14.8


@dataclass(frozen=True, slots=True)
class Drift:
    """The chance `p` of such an order in a launch without a trend, and the trend over the whole launch / median."""

    p: float
    change: float


def mann_kendall(values: Sequence[float]) -> float:
    """Return the two-sided p of Mann and Kendall's test of no trend, by its normal approximation, corrected for ties.

    Kendall, Rank Correlation Methods (1975), ch. 4. Of fewer than three values, or of equal ones, it is 1.
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
    z = max(0.0, abs(score) - 1) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def theil_sen(values: Sequence[float]) -> float:
    """Return the median slope per step between all pairs (Sen, 1968). Raises ValueError for fewer than two values."""
    series = np.asarray(values, float)
    if len(series) < 2:
        raise ValueError(f"a slope through {len(series)} values")
    later, earlier = np.tril_indices(len(series), -1)
    return float(np.median((series[later] - series[earlier]) / (later - earlier)))


def drift(values: Sequence[float]) -> Drift:
    """Return the trend in positive values, which were made one after another. Raises ValueError for fewer than two."""
    change = theil_sen(values) * (len(values) - 1) / float(np.median(np.asarray(values, float)))
    return Drift(mann_kendall(values), change)


def outliers(values: Sequence[float]) -> tuple[int, ...]:
    """Return the indices of values whose modified z-score 0.6745 |x - median| / MAD is above 14.8.

    Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993); their 3.5 would flag ordinary jitter. Where more
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
