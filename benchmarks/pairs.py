"""Interleaved pairs: A and B by turns, so that a disturbance of the machine meets both."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from cotenant.stats.describe import median_interval_ranks


@dataclass(frozen=True)
class Median:
    """A median with its exact order-statistic 95 % interval, and the number of values."""

    value: float
    low: float
    high: float
    n: int


def median_of(values: list[float]) -> Median:
    ordered = np.sort(values)
    low, high = median_interval_ranks(len(ordered)) or (1, len(ordered))
    return Median(float(np.median(ordered)), float(ordered[low - 1]), float(ordered[high - 1]), len(ordered))


def interleaved(a: Callable[[], int], b: Callable[[], int], pairs: int) -> tuple[list[int], list[int]]:
    """Return the nanoseconds of `a()` and `b()` in each of `pairs` pairs; the one that comes first alternates.

    Both draw the same random numbers in a pair. An uncounted pair comes before the first.
    """
    turns: tuple[list[int], list[int]] = ([], [])
    gc.collect()
    gc.disable()
    for pair in range(pairs + 1):
        for side in (pair % 2, 1 - pair % 2):
            torch.manual_seed(pair)
            turns[side].append((a, b)[side]())
    gc.enable()
    return turns[0][1:], turns[1][1:]
