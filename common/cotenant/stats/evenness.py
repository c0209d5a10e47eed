"""Judges whether users, or jobs, differ at all: by Tukey's studentised range over launches, with shrunk values.

The least and the greatest of several noisy means differ by chance alone, and more so the more means there are. So the
least one is named only beyond chance, and its distance is given by values shrunk to their mean.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

import numpy as np

from cotenant.stats.kept import Kept
from cotenant.stats.quantiles import t_975

UNLIKELY, NOTICEABLE = 0.05, 0.02
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_Z = np.linspace(-8.0, 8.0, 321)


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences of several means, on logarithms.

    `p` is the chance of so wide a range among equals; `effects` are the means minus their overall mean, shrunk to it
    (empirical Bayes: the part of noise in their variance is removed), and `error` is the standard error of an effect.
    """

    p: float
    effects: tuple[float, ...]
    error: float
    freedom: int

    @property
    def notable(self) -> bool:
        """True if they are neither explained by noise nor too small to matter."""
        return self.p < UNLIKELY and self.range < 1 - NOTICEABLE

    @property
    def range(self) -> float:
        """The least over the greatest: 1 if all are equal."""
        return math.exp(min(self.effects) - max(self.effects))

    @property
    def least(self) -> int:
        """The place of the least."""
        return self.effects.index(min(self.effects))


def differences(rows: Sequence[Sequence[float]]) -> Differences | None:
    """Return how the columns differ over the rows, which are launches, or jobs; None for fewer than two of either.

    The common part of a row drops out: the noise is the rest without the rows' and the columns' means.
    """
    table = np.asarray(rows, float)
    if table.ndim < 2 or min(table.shape) < 2:
        return None
    n, k = table.shape
    means = table.mean(axis=0)
    rest = table - means - table.mean(axis=1, keepdims=True) + table.mean()
    freedom = (n - 1) * (k - 1)
    return differences_of(means.tolist(), math.sqrt(float((rest**2).sum()) / freedom / n), freedom)


def differences_of(means: Sequence[float], error: float, freedom: int) -> Differences:
    """Return how at least two means with equal standard errors differ, known with `freedom` degrees of freedom."""
    span, center = max(means) - min(means), fmean(means)
    shrunk = max(0.0, 1 - error**2 / variance(means)) if span else 0.0
    p = 1.0 if not span else 0.0 if not error else beyond(span / error, len(means), freedom)
    return Differences(p, tuple(shrunk * (mean - center) for mean in means), math.sqrt(shrunk) * error, freedom)


def differences_by_intervals(parts: Sequence[Kept]) -> Differences | None:
    """Return how several kept shares differ, by their intervals over launches; None if one has none.

    Processes of one program differ from launch to launch by more than the rounds of a launch can show.
    """
    widths = [
        math.log(part.interval[1] / part.interval[0]) / 2 / t_975(part.n - 1)
        for part in parts
        if part.over == "launches" and part.interval is not None
    ]
    if len(widths) < max(2, len(parts)):
        return None
    error = math.sqrt(fmean(width**2 for width in widths))
    return differences_of([math.log(part.value) for part in parts], error, sum(part.n - 1 for part in parts))


@functools.lru_cache
def beyond(q: float, k: int, freedom: int) -> float:
    """Return the chance that the studentised range of k normal means exceeds q (Tukey, 1953).

    It is a quadrature over the greatest mean and the quantiles of the error, as scipy.stats takes a second to import.
    """
    from scipy import special  # takes a fifth of a second to import

    quantiles = (_NODES + 1) / 2
    scales = np.sqrt(2 * special.gammaincinv(freedom / 2, quantiles) / freedom)
    tails = special.ndtr(_Z) - special.ndtr(_Z - q * scales[:, None])
    density = np.exp(-(_Z**2) / 2) / math.sqrt(2 * math.pi)
    within = k * (density * tails ** (k - 1)).sum(axis=1) * (_Z[1] - _Z[0])
    return float(min(1.0, max(0.0, 1 - (_WEIGHTS / 2 * within).sum())))
