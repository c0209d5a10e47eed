"""What is said about the observations of one tenant of one launch (docs/method.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import binom

from cotenant.stats.description import Description

MAD_TO_SD = 1.4826


def median_interval_ranks(n: int, level: float = 0.95) -> tuple[int, int] | None:
    """Return the 1-based ranks between which the median lies with at least `level`, or None where n is too small.

    The narrowest symmetric pair (r, n + 1 - r) whose binomial(n, 1/2) probability reaches the level
    (David and Nagaraja, Order Statistics, 7.1).
    """
    rank = int(binom.ppf((1 - level) / 2, n, 0.5))
    while rank >= 1 and binom.cdf(n - rank, n, 0.5) - binom.cdf(rank - 1, n, 0.5) < level:
        rank -= 1
    return (rank, n + 1 - rank) if rank >= 1 else None


def describe(items: Sequence[float], seconds: Sequence[float]) -> Description:
    """Describe observations of `items` each in `seconds` each. Raises ValueError where there is none."""
    if not items or len(items) != len(seconds):
        raise ValueError(f"{len(items)} counts of items and {len(seconds)} durations")
    durations = np.asarray(seconds, float)
    rates = np.sort(np.asarray(items, float) / durations)
    median = float(np.median(rates))
    ranks = median_interval_ranks(len(rates))
    q25, q75 = np.quantile(rates, [0.25, 0.75])
    return Description(
        n=len(rates),
        median=median,
        interval=(float(rates[ranks[0] - 1]), float(rates[ranks[1] - 1])) if ranks else None,
        robust_spread=MAD_TO_SD * float(np.median(np.abs(rates - median))) / median if median else 0.0,
        iqr=float(q75 - q25),
        best=float(rates[-1]),
        p95_s=float(np.quantile(durations, 0.95)),
        mean=float(rates.mean()),
        sd=float(rates.std()),
        min=float(rates[0]),
        max=float(rates[-1]),
    )
