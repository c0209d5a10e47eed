"""Slow observations that stand far off, and whether it was the input they waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cotenant.stats.steadiness import outliers

LEAST_DISTANCE = 0.01
"""Of the median. Of observations that agree to a millionth even a thousandth stands far off, and matters to nobody."""
MOSTLY = 0.5


@dataclass(frozen=True, slots=True)
class Spikes:
    """Indices of values that stand far off: those that came `late` because of their wait, and all others."""

    late: tuple[int, ...]
    others: tuple[int, ...]


def spikes(values: Sequence[float], waits: Sequence[float]) -> Spikes:
    """Return what stands far off among `values` (seconds), of each of which `waits` were spent waiting for input.

    A value is late where at least half of what it took beyond the median is wait beyond the median wait.
    """
    series, waited = np.asarray(values, float), np.asarray(waits, float)
    if not len(series):
        return Spikes((), ())
    middle = float(np.median(series))
    over, waited_over = series - middle, waited - np.median(waited)
    far = [index for index in outliers(values) if abs(over[index]) >= LEAST_DISTANCE * middle]
    late = tuple(index for index in far if 0 < MOSTLY * over[index] <= waited_over[index])
    return Spikes(late, tuple(index for index in far if index not in late))
