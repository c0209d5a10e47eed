"""What is said about the observations of one tenant of one launch (docs/method.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cotenant.stats.description import Description

MAD_TO_SD = 1.4826


def median_interval_ranks(n: int) -> tuple[int, int] | None:
    """Return the 1-based ranks between which the median lies with at least 95 %, or None where n is too small.

    The narrowest symmetric pair (r, n + 1 - r): it misses the median where fewer than r observations lie on one side,
    of which the chance is 2 P(binomial(n, 1/2) < r) (David and Nagaraja, Order Statistics, 7.1). Counted in whole
    numbers, so exact: `below` of the 2^n equally likely patterns have fewer than `rank` + 1 on the one side.
    """
    rank, ways, below = 0, 1, 1
    while 40 * below <= 1 << n:
        rank += 1
        ways = ways * (n + 1 - rank) // rank
        below += ways
    return (rank, n + 1 - rank) if rank else None


def describe(items: Sequence[float], seconds: Sequence[float]) -> Description:
    """Describe observations of `items` each in `seconds` each. Raises ValueError for none, or one without a rate."""
    if not items or len(items) != len(seconds):
        raise ValueError(f"{len(items)} counts of items and {len(seconds)} durations")
    if not all(math.isfinite(value) and value > 0 for value in (*items, *seconds)):
        raise ValueError("a count of items or a duration that is no positive number")
    durations = np.asarray(seconds, float)
    rates = np.sort(np.asarray(items, float) / durations)
    median = float(np.median(rates))
    ranks = median_interval_ranks(len(rates))
    q25, q75 = np.quantile(rates, [0.25, 0.75])
    return Description(
        n=len(rates),
        median=median,
        interval=(float(rates[ranks[0] - 1]), float(rates[ranks[1] - 1])) if ranks else None,
        robust_spread=MAD_TO_SD * float(np.median(np.abs(rates - median))) / median,
        iqr=float(q75 - q25),
        best=float(rates[-1]),
        p95_s=float(np.quantile(durations, 0.95)),
        mean=float(rates.mean()),
        sd=float(rates.std()),
        min=float(rates[0]),
        max=float(rates[-1]),
    )
