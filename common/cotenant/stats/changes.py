"""Change points in a history of rates: where the level moved, and stayed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from cotenant.stats.launches import logarithms

P_CHANGE = 0.01
LEAST_RUN = 3
"""A level has to hold for three entries to be one."""


@dataclass(frozen=True, slots=True)
class Change:
    """From entry `index` on the rate is `ratio` times what it was; `p` is Pettitt's."""

    index: int
    ratio: float
    p: float


def change_points(rates: Sequence[float], margin: float) -> tuple[Change, ...]:
    """Return the changes of level by more than `margin` (0.02: two percent), in the order of time.

    Pettitt's test (1979) finds the most likely place, and is asked again on both sides of it.
    Raises ValueError for a rate that is not positive.
    """
    if not rates:
        return ()
    logs = logarithms(rates)
    borders = sorted(_split(logs, 0, margin))
    starts = [0, *(index for index, _ in borders)]
    ends = [*starts[1:], len(logs)]
    levels = [float(np.median(logs[start:end])) for start, end in zip(starts, ends, strict=True)]
    changes = [
        Change(index, math.exp(after - before), p)
        for (index, p), before, after in zip(borders, levels, levels[1:], strict=False)
    ]
    return tuple(change for change in changes if abs(math.log(change.ratio)) > math.log1p(margin))


def _split(logs: npt.NDArray[np.float64], first: int, margin: float) -> list[tuple[int, float]]:
    n = len(logs)
    if n < 2 * LEAST_RUN:
        return []
    # How many of all others an entry is above, less how many it is below; inside the first k entries they cancel.
    above = 2 * stats.rankdata(logs) - n - 1
    counts = np.cumsum(above)[LEAST_RUN - 1 : n - LEAST_RUN]
    best = int(np.abs(counts).argmax())
    at, statistic = best + LEAST_RUN, float(abs(counts[best]))
    p = min(1.0, 2 * math.exp(-6 * statistic**2 / (n**3 + n**2)))
    step = abs(float(np.median(logs[at:]) - np.median(logs[:at])))
    if p >= P_CHANGE or step <= math.log1p(margin):
        return []
    return [*_split(logs[:at], first, margin), (first + at, p), *_split(logs[at:], first + at, margin)]
