"""How evenly tenants were served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fairness:
    """Jain's index (1 where all are equal, 1/n where one has all) and the worst rate over the best."""

    jain: float
    worst_over_best: float
    slowest: int


def fairness(rates: Sequence[float]) -> Fairness:
    """Return the fairness of positive rates; `slowest` is the index of the smallest.

    Jain, Chiu, Hawe: A quantitative measure of fairness and discrimination (1984). Raises ValueError without rates.
    """
    if not rates or min(rates) <= 0:
        raise ValueError(f"fairness of {list(rates)}")
    squares = sum(rate * rate for rate in rates)
    return Fairness(
        jain=sum(rates) ** 2 / (len(rates) * squares),
        worst_over_best=min(rates) / max(rates),
        slowest=min(range(len(rates)), key=rates.__getitem__),
    )
