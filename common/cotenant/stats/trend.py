"""A trend over launches in the order they ran, which need not be evenly spaced in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import stats

from cotenant.stats.launches import CONFIDENCE, logarithms
from cotenant.stats.steadiness import mann_kendall

P_TREND = 0.01
LEAST = 4
"""Of three launches even a perfect order has a chance of a third."""


@dataclass(frozen=True, slots=True)
class Trend:
    """From the first launch to the last the rate became `ratio` times what it was, at an even pace.

    `interval` (95 %) is of `ratio`; `p` is the chance of such an order among launches without a trend.
    """

    ratio: float
    interval: tuple[float, float]
    p: float

    @property
    def real(self) -> bool:
        """Whether chance is a poor explanation."""
        return self.p < P_TREND


def trend(times_s: Sequence[float], rates: Sequence[float]) -> Trend | None:
    """Return the trend of launches' rates (items per second) over their times, which must not fall.

    The slope is Sen's (1968), of the rates' logarithms over time, with his interval; p is Mann and Kendall's. None for
    fewer than four launches, where no time passed, or where nearly all times and rates are equal. Raises ValueError for
    a rate that is not positive, for unequal numbers of times and rates, and for times that fall.
    """
    if len(times_s) != len(rates) or any(later < time for time, later in pairwise(times_s)):
        raise ValueError(f"{len(rates)} rates at {len(times_s)} times, or times that fall")
    if len(rates) < LEAST or times_s[-1] <= times_s[0]:
        return None
    logs, span = logarithms(rates), times_s[-1] - times_s[0]
    places = [(time - times_s[0]) / span for time in times_s]
    # Two launches a moment apart overflow; where nearly all are equal the interval's variance is below zero.
    with np.errstate(over="ignore", invalid="ignore"):
        slope, _, low, high = stats.theilslopes(logs, places, CONFIDENCE)
    if math.isnan(low) or math.isnan(high):
        return None
    return Trend(_exp(slope), (_exp(low), _exp(high)), mann_kendall(rates))


def _exp(value: float) -> float:
    """What leaves a float's range is at its end."""
    return math.exp(min(max(float(value), -700.0), 700.0))
