"""Parts that the benchmarks share: turns in pairs, medians with intervals, and the promises that tables print."""

from __future__ import annotations

import gc
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter_ns
from typing import Any, Literal

import numpy as np
import torch

from cotenant.bench.chrono import Work, observe
from cotenant.stats.describe import median_interval_ranks

Timed = Callable[[], int]
"""Runs one turn and returns its nanoseconds."""
SIGNS = {"<": operator.lt, "<=": operator.le}


@dataclass(frozen=True, slots=True)
class Promise:
    """An upper bound in a unit."""

    sign: Literal["<", "<="]
    bound: float
    unit: str

    def kept(self, value: float) -> bool:
        """Return whether a number keeps the promise; NaN keeps none."""
        return bool(SIGNS[self.sign](value, self.bound))

    def verdict(self, value: float) -> str:
        """Return the promise as a table says it, `<= 3 ms: kept`."""
        return f"{self.sign} {self.bound:g} {self.unit}: {'kept' if self.kept(value) else 'BROKEN'}"


@dataclass(frozen=True, slots=True)
class Median:
    """A median with its exact order-statistic 95 % interval, and the number of values."""

    value: float
    low: float
    high: float
    n: int

    def shown(self, form: str = ".4f", unit: str = "") -> str:
        return f"{self.value:{form}}{unit} [{self.low:{form}}, {self.high:{form}}]"


def median_of(values: Sequence[float]) -> Median:
    ordered = np.sort(values)
    low, high = median_interval_ranks(len(ordered)) or (1, len(ordered))
    return Median(float(np.median(ordered)), float(ordered[low - 1]), float(ordered[high - 1]), len(ordered))


def interleaved(a: Timed, b: Timed, pairs: int) -> tuple[list[int], list[int]]:
    """Return the nanoseconds of `a()` and `b()` in each of `pairs` pairs; the one that comes first alternates.

    A disturbance of the machine thus meets both. Both draw the same random numbers in a pair. An uncounted pair comes
    before the first.
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


def one_processor(rank: int = 0) -> None:
    """Pin this process to one processor and one thread; ranks get different processors if there are enough."""
    processors = sorted(os.sched_getaffinity(0), reverse=True)
    os.sched_setaffinity(0, {processors[rank % len(processors)]})
    torch.set_num_threads(1)


def observed(work: Work, number: int) -> Timed:
    """Return a turn of `number` batches in the measured loop."""

    def run() -> int:
        seen = observe(work, number)
        return seen.end_ns - seen.start_ns

    return run


def bare(work: Work, number: int) -> Timed:
    """Return a turn of the same steps in a bare loop."""

    def run() -> int:
        step, batches, given, device = work.step, work.batches, work.run, work.device
        device.synchronize()
        start_ns = perf_counter_ns()
        for _ in range(number):
            step(given, next(batches))
        device.synchronize()
        return perf_counter_ns() - start_ns

    return run


def by_hand(script: Iterator[Any], number: int) -> Timed:
    """Return a turn of `number` steps of a page written by hand."""

    def run() -> int:
        start_ns = perf_counter_ns()
        for _ in islice(script, number):
            pass
        return perf_counter_ns() - start_ns

    return run
