"""The classical interval of a mean, for the older forms that ask for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev

from scipy import stats

from cotenant.stats.launches import CONFIDENCE


def half_width(values: Sequence[float]) -> float | None:
    """Return the half-width of the 95 % t interval of the mean (Student, 1908); None for fewer than two values."""
    if len(values) < 2:
        return None
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
