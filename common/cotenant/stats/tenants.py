"""The tenants of one launch beside each other: how evenly they were served, and the load common to all of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
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


Span = tuple[int, int]


def common_load(loads: Sequence[Span], since_ns: int | None = None) -> Span:
    """Return [latest start, earliest end] of the tenants' loads, in ns; empty spans have their end at their start.

    Where all were under load before they were observed, `since_ns` says from when.
    """
    start_ns = max(start for start, _ in loads)
    if since_ns is not None:
        start_ns = min(start_ns, since_ns)
    return start_ns, max(start_ns, min(end for _, end in loads))


def overlap(observations: Iterable[Span], common: Span) -> float:
    """Return the share of the observations' time that lies inside `common`.

    Raises ValueError for an observation that ends before it starts, and where none took any time.
    """
    inside_ns = total_ns = 0
    for start_ns, end_ns in observations:
        if end_ns < start_ns:
            raise ValueError(f"an observation from {start_ns} to {end_ns}")
        total_ns += end_ns - start_ns
        inside_ns += max(0, min(end_ns, common[1]) - max(start_ns, common[0]))
    if not total_ns:
        raise ValueError("no observed time")
    return inside_ns / total_ns
