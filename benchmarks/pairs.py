"""Interleaved pairs: A and B by turns, so that what the machine does meanwhile happens to both."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cotenant.stats.describe import median_interval_ranks


@dataclass(frozen=True)
class Median:
    """A median with its exact order-statistic 95 % interval, and how many values it is of."""

    value: float
    low: float
    high: float
    n: int


def median_of(values: list[float]) -> Median:
    ordered = np.sort(values)
    low, high = median_interval_ranks(len(ordered)) or (1, len(ordered))
    return Median(float(np.median(ordered)), float(ordered[low - 1]), float(ordered[high - 1]), len(ordered))


def interleaved(a: Callable[[], int], b: Callable[[], int], pairs: int) -> tuple[list[int], list[int]]:
    """Return the nanoseconds of `a()` and `b()` over so many pairs; who comes first alternates."""
    a_ns, b_ns = [], []
    a(), b()
    gc.collect()
    gc.disable()
    for pair in range(pairs):
        if pair % 2:
            b_ns.append(b())
            a_ns.append(a())
        else:
            a_ns.append(a())
            b_ns.append(b())
    gc.enable()
    return a_ns, b_ns
