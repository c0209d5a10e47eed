"""How evenly tenants were served."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fairness:
    """Jain's index (1 where all are equal, 1/n where one has all), the worst rate over the best, and whose it is."""

    jain: float
    worst_over_best: float
    slowest: int


def fairness(rates: Sequence[float]) -> Fairness:
    """Return the fairness of positive rates; `slowest` is the index of the smallest.

    Jain, Chiu, Hawe: A quantitative measure of fairness and discrimination (1984). Raises ValueError without rates.
    """
    if not rates or not (min(rates) > 0 and max(rates) < math.inf) or math.isnan(sum(rates)):
        raise ValueError(f"fairness of {list(rates)}")
    # Of shares of the best, whose squares neither overflow nor vanish together; rounding may go a bit beyond 1.
    best = max(rates)
    shares = [rate / best for rate in rates]
    jain = sum(shares) ** 2 / (len(shares) * sum(map(operator.mul, shares, shares)))
    return Fairness(min(1.0, jain), min(shares), rates.index(min(rates)))
