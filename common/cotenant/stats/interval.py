"""Half the width of a 95 % interval: of a mean, and of a sum of means that err independently."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev

from cotenant.stats.launches import t_quantile


def half_width(values: Sequence[float]) -> float | None:
    """Return the half-width of the 95 % t interval of the mean (Student, 1908); None for fewer than two values."""
    if len(values) < 2:
        return None
    return t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))


def combined_half_width(terms: Sequence[tuple[float, int]]) -> float:
    """Return the half-width of the 95 % t interval of a sum, given each part's variance and degrees of freedom.

    The sum's degrees of freedom are Satterthwaite's (1946); of two parts that is Welch's interval.
    """
    variance = sum(part for part, _ in terms)
    if not variance:
        return 0.0
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in terms)
    return t_quantile(freedom) * math.sqrt(variance)
