"""Quantiles of one launch's steps with exact intervals: what the slowest of a hundred waits for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quantile:
    """The q-quantile of n values, and its exact 95 % interval; None where n is too small for one."""

    value: float
    interval: tuple[float, float] | None


def quantile(values: Sequence[float], q: float) -> Quantile:
    """Return the least value that at least q of all do not exceed, with the order statistics it lies between.

    Rank r lies below the true quantile with P(binomial(n, q) >= r) (David and Nagaraja, Order Statistics, 7.1): each
    end is missed with at most 2.5 %. Values are taken as independent; those of one launch that drift are not.
    Raises ValueError for no values.
    """
    # Not before: the runner imports this room while it may not be slow.
    from scipy.stats import binom

    if not values:
        raise ValueError("a quantile of no values")
    ordered, n = sorted(values), len(values)
    value = ordered[max(0, math.ceil(q * n) - 1)]
    low, high = int(binom.ppf(0.025, n, q)), int(binom.ppf(0.975, n, q)) + 1
    return Quantile(value, (ordered[low - 1], ordered[high - 1]) if low >= 1 and high <= n else None)
