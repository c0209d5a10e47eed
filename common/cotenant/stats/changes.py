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
LEAST_PART = 20
"""Of fewer entries even a perfect step seldom has a p that passes the correction."""


@dataclass(frozen=True, slots=True)
class Change:
    """From entry `index` on the rate is `ratio` times what it was; `p` is Pettitt's, times the number of windows."""

    index: int
    ratio: float
    p: float


def change_points(rates: Sequence[float], margin: float) -> tuple[Change, ...]:
    """Return the changes of level by more than `margin` (0.02: two percent), in the order of time.

    Pettitt's test (1979) is asked in each of a fixed set of windows, since one of the whole does not see a level that
    returns. The place of the least p is a change where that p passes Bonferroni's correction for the number of windows,
    and both sides of it are asked again: seeded binary segmentation (Kovács, Bühlmann, Li and Munk, 2023).
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
    windows = _windows(len(logs))
    found = [(p, start + at) for start, end in windows for p, at, step in [_pettitt(logs[start:end])] if step > margin]
    p, at = min(found, default=(1.0, 0))
    p *= len(windows)
    if not found or p >= P_CHANGE:
        return []
    return [*_split(logs[:at], first, margin), (first + at, p), *_split(logs[at:], first + at, margin)]


def _windows(n: int) -> list[tuple[int, int]]:
    """Return the whole of n entries, and parts: by the root of two shorter each time, half of each in the next."""
    found = [(0, n)] if n >= 2 * LEAST_RUN else []
    for k in range(1, 2 * n.bit_length()):
        length = n / 2 ** (k / 2)
        if length < LEAST_PART:
            break
        steps = math.ceil(2 * (n - length) / length)
        starts = [(n - length) * step / steps for step in range(steps + 1)]
        found += [(round(start), round(start + length)) for start in starts]
    return found


def _pettitt(logs: npt.NDArray[np.float64]) -> tuple[float, int, float]:
    """Return the p of the most likely place, where it is, and by what part the level moves there."""
    n = len(logs)
    # How many of all others an entry is above, less how many it is below; inside the first k entries they cancel.
    above = 2 * stats.rankdata(logs) - n - 1
    counts = np.cumsum(above)[LEAST_RUN - 1 : n - LEAST_RUN]
    best = int(np.abs(counts).argmax())
    at, statistic = best + LEAST_RUN, float(abs(counts[best]))
    step = abs(float(np.median(logs[at:]) - np.median(logs[:at])))
    return min(1.0, 2 * math.exp(-6 * statistic**2 / (n**3 + n**2))), at, math.expm1(step)
