"""What is said about the observations of one tenant of one launch (docs/method.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cotenant.stats.description import Description
from cotenant.stats.median import median_interval_ranks

MAD_TO_SD = 1.4826


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
