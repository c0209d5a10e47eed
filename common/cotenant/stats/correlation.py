"""The correlation of consecutive observations, and the number of independent ones that they are worth.

Standard library only: the runner asks while tenants are timed.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

MOST = 0.95
"""Beyond it a launch would be worth less than a fortieth of its observations, and no estimate is that exact."""


def lag_correlation(values: Sequence[float], fitted: int = 0) -> float:
    """Return the correlation of each value's rank with the rank before it, from 0 to MOST.

    Ranks are used because a single value far off would hide how alike the others are. For the residuals of a fit of
    `fitted` parameters, the estimate is too low by about (1 + 4 r) / n, and by 1 / n more for each parameter beyond a
    mean (Marriott and Pope, 1954): that is added. 0 for fewer than three values, or equal ones.
    """
    ranks = _ranks(values)
    middle = (len(ranks) + 1) / 2
    deviations = [rank - middle for rank in ranks]
    squares = sum(deviation**2 for deviation in deviations)
    if len(ranks) < 3 or not squares:
        return 0.0
    products = sum(before * after for before, after in itertools.pairwise(deviations))
    correlation = products / squares
    if fitted:
        correlation = (len(ranks) * correlation + fitted) / max(len(ranks) - 4, 1)
    return min(max(correlation, 0.0), MOST)


def variance_inflation(correlation: float) -> float:
    """Return the factor by which a lag-1 `correlation` of values widens their mean's variance: (1 + r) / (1 - r)."""
    return (1 + correlation) / (1 - correlation)


def correlation_of_means(correlation: float, size: int) -> float:
    """Return the lag-1 correlation of means of `size` values each, if values correlate by `correlation`^k at lag k."""
    rest = 1 - correlation**size
    return correlation * rest**2 / (size * (1 - correlation**2) - 2 * correlation * rest)


def effective_count(values: Sequence[float]) -> float:
    """Return n (1 - r) / (1 + r), the equivalent number of independent values (Bayley and Hammersley, 1946)."""
    return len(values) / variance_inflation(lag_correlation(values))


def scaled_rank(rank: int, total: int, n: int) -> int:
    """Return the rank among `n` values, rounded down, in the position of `rank` among `total`; at least 1."""
    return max(1, math.floor((rank - 0.5) * n / total + 0.5))


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the ranks from 1 on; equal values share their mean rank."""
    ordered = sorted(values)
    return [(bisect_left(ordered, value) + bisect_right(ordered, value) + 1) / 2 for value in values]
