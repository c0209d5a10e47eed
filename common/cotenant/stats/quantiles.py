"""Quantiles: of one launch's steps, with intervals, and of the distributions that intervals are made of.

A launch needs no scipy, so functions import it: `scipy.special` takes a fifth of a second, and `scipy.stats`, with the
same quantiles, a whole one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from cotenant.stats.correlation import effective_count, scaled_rank


class Quantile(NamedTuple):
    """The q-quantile of n values, and its 95 % interval; None if n is too small for one."""

    value: float
    interval: tuple[float, float] | None


def quantile(values: Sequence[float], q: float) -> Quantile:
    """Return the least value that at least q of all do not exceed, with the order statistics around it.

    Rank r lies below the true quantile with P(binomial(n, q) >= r) (David and Nagaraja, Order Statistics, 7.1): each
    end is missed with at most 2.5 %. n is the equivalent number of independent values, in the order of their making.
    Raises ValueError for no values.
    """
    if not values:
        raise ValueError("a quantile of no values")
    ordered, n, worth = sorted(values), len(values), math.floor(effective_count(values))
    value = ordered[max(0, math.ceil(q * n) - 1)]
    low, high = binomial_quantile(0.025, worth, q), binomial_quantile(0.975, worth, q)
    if low < 1 or high >= worth:
        return Quantile(value, None)
    # The rank of the upper end, counted down from the largest.
    above = scaled_rank(worth - high, worth, n)
    return Quantile(value, (ordered[scaled_rank(low, worth, n) - 1], ordered[n - above]))


def binomial_quantile(probability: float, n: int, q: float) -> int:
    """Return the quantile of binomial(n, q) at this probability, as scipy.stats.binom.ppf."""
    from scipy import special

    count: int = math.ceil(special.bdtrik(probability, n, q))
    # The inverse is continuous, and can lie just above a whole number.
    below = count > 0 and special.bdtr(count - 1, n, q) >= probability
    return count - 1 if below else count


def t_975(freedom: float) -> float:
    """Return the t (Student, 1908) of these degrees of freedom that leaves a fortieth above it: a 95 % interval's."""
    return t_below(0.975, freedom)


def t_below(probability: float, freedom: float) -> float:
    """Return the t of these degrees of freedom that has this probability below it."""
    from scipy import special

    return float(special.stdtrit(freedom, probability))
