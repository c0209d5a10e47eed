"""A history of rates: its trend over time, the points where the level moved, and a newest launch that is off it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import special

from cotenant.stats.correlation import lag_correlation, variance_inflation
from cotenant.stats.kept import CONFIDENCE
from cotenant.stats.launches import logarithms
from cotenant.stats.steadiness import correlation_around_trend, mann_kendall

P_TREND = 0.01
LEAST = 4
"""With three launches even a perfect order has a chance of a third."""
P_CHANGE = 0.01
LEAST_RUN = 3
"""A level has to hold for three entries to be one."""
LEAST_NOISE = 1e-9
"""Launches that are equal to the last digit have a spread of 0, and no launch is infinitely far off."""
LEAST_PART = 20
"""With fewer entries even a perfect step seldom has a p that passes the correction."""


@dataclass(frozen=True, slots=True)
class Trend:
    """From the first launch to the last the rate became `ratio` times as high, at an even pace.

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

    The slope is Sen's (1968), of the rates' logarithms over time, with his interval; p is Mann and Kendall's. Both know
    how alike launches in a row are. None for fewer than four launches, where no time passed, or where nearly all times
    and rates are equal. Raises ValueError for a rate that is not positive, for unequal numbers of times and rates, and
    for times that fall.
    """
    if len(times_s) != len(rates) or any(later < time for time, later in pairwise(times_s)):
        raise ValueError(f"{len(rates)} rates at {len(times_s)} times, or times that fall")
    if len(rates) < LEAST or times_s[-1] <= times_s[0]:
        return None
    from scipy.stats import theilslopes  # takes a second to import, and to add to a history needs no trend

    logs, span = logarithms(rates), times_s[-1] - times_s[0]
    places = [(time - times_s[0]) / span for time in times_s]
    # Two launches a moment apart overflow; where nearly all are equal the interval's variance is below zero.
    with np.errstate(over="ignore", invalid="ignore"):
        slope, _, low, high = theilslopes(logs, places, CONFIDENCE)
    if math.isnan(low) or math.isnan(high):
        return None
    correlation = correlation_around_trend(rates)
    width = math.sqrt(variance_inflation(correlation))
    interval = _exp(slope - width * (slope - low)), _exp(slope + width * (high - slope))
    return Trend(_exp(slope), interval, mann_kendall(rates, correlation))


def _exp(value: float) -> float:
    """Return e to the power of a value, limited to a float's range."""
    return math.exp(np.clip(value, -700, 700))


@dataclass(frozen=True, slots=True)
class LevelChange:
    """From entry `index` on the rate is `ratio` times as high, by a test whose chance of such a one is `p`."""

    index: int
    ratio: float
    p: float


def change_points(rates: Sequence[float], margin: float) -> tuple[LevelChange, ...]:
    """Return the changes of level by more than `margin` (0.02: two percent), in the order of time.

    Pettitt's test (1979) is asked in each of a fixed set of windows, since one of the whole does not see a level that
    returns. The place of the least p is a change where that p passes Bonferroni's correction for the number of windows,
    and both sides of it are asked again: seeded binary segmentation (Kovács, Bühlmann, Li and Munk, 2023).
    Raises ValueError for a rate that is not positive.
    """
    if not rates:
        return ()
    logs = logarithms(rates)
    borders = _split(logs, 0, margin)
    levels = [float(np.median(part)) for part in np.split(logs, [index for index, _ in borders])]
    changes = [
        LevelChange(index, math.exp(after - before), p)
        for (index, p), (before, after) in zip(borders, pairwise(levels), strict=True)
    ]
    return tuple(change for change in changes if abs(math.log(change.ratio)) > math.log1p(margin))


def newest_change(rates: Sequence[float], margin: float) -> LevelChange | None:
    """Return the change that the newest entry, or the newest two, make from the level of all before them.

    Each lies outside of the 99 % prediction bound of the entries before (Student's t) and more than `margin` off their
    geometric mean, two on the same side of it. One may be a bad night, so it is provisional; a second one confirms it
    long before Pettitt's test could. None where fewer than three entries make the level.
    Raises ValueError for a rate that is not positive.
    """
    for newest in range(min(2, len(rates) - LEAST_RUN), 0, -1):
        before, off = np.split(logarithms(rates), [-newest])
        steps = off - before.mean()
        bound = float(before.std(ddof=1)) * math.sqrt(1 + 1 / len(before))
        p = float(max(2 * special.stdtr(len(before) - 1, -np.abs(steps) / max(bound, LEAST_NOISE))))
        if p < P_CHANGE and np.abs(steps).min() > math.log1p(margin) and abs(np.sign(steps).sum()) == newest:
            return LevelChange(len(rates) - newest, math.exp(float(steps.mean())), p)
    return None


def _split(logs: npt.NDArray[np.float64], first: int, margin: float) -> list[tuple[int, float]]:
    """Return the borders of levels, in the order of time, each with its p; `first` is the place of the first entry."""
    windows = _windows(len(logs))
    steps = [(p, start + at) for start, end in windows for p, at, step in [_pettitt(logs[start:end])] if step > margin]
    p, at = min(steps, default=(1.0, 0))
    p *= len(windows)
    if not steps or p >= P_CHANGE:
        return []
    return [*_split(logs[:at], first, margin), (first + at, p), *_split(logs[at:], first + at, margin)]


def _windows(n: int) -> list[tuple[int, int]]:
    """Return the whole of n entries, and parts: by the root of two shorter each time, half of each in the next."""
    windows = [(0, n)] if n >= 2 * LEAST_RUN else []
    for k in range(1, 2 * n.bit_length()):
        length = n / 2 ** (k / 2)
        if length < LEAST_PART:
            break
        steps = math.ceil(2 * (n - length) / length)
        starts = [(n - length) * step / steps for step in range(steps + 1)]
        windows += [(round(start), round(start + length)) for start in starts]
    return windows


def _pettitt(logs: npt.NDArray[np.float64]) -> tuple[float, int, float]:
    """Return the p of the most likely place, that place, and the part by which the level moves there."""
    n = len(logs)
    # How many of all others an entry is above, less how many it is below; inside the first k entries they cancel.
    _, at_value, ties = np.unique(logs, return_inverse=True, return_counts=True)
    above = (2 * np.cumsum(ties) - ties - n)[at_value]
    counts = np.cumsum(above)[LEAST_RUN - 1 : n - LEAST_RUN]
    best = int(np.abs(counts).argmax())
    at, statistic = best + LEAST_RUN, float(abs(counts[best]))
    before, after = float(np.median(logs[:at])), float(np.median(logs[at:]))
    level = np.concatenate((logs[:at] - before, logs[at:] - after))
    statistic /= math.sqrt(variance_inflation(lag_correlation(level.tolist())))
    return min(1.0, 2 * math.exp(-6 * statistic**2 / (n**3 + n**2))), at, math.expm1(abs(after - before))
