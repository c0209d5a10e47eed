"""How long a suite takes: its estimate before it begins, and how it keeps to that.

A launch takes the time until its tenants are ready, which is the processor's, and the time that it measures, which is
a budget.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from cotenant.launch.baseline import QUICK_KEPT_S, QUICK_MOST_S
from cotenant.launch.duet import DUET_BUDGET_NS
from cotenant.launch.limits import Limits
from cotenant.launch.schedule import BUDGET_NS
from cotenant.launch.start import Start

MOST_S, KEPT_BACK_S = 600.0, 60.0
"""The time of a suite whose measured time nobody sets, and the part of it for data and tables."""
LEAST_PART = 0.4
"""A launch has at least this share of its usual time, even where the suite's time is then exceeded."""
CALIBRATION_S = 0.5
COMPILED_BYTES_S = 7.3e6
"""Bytes of Python that the processor compiles in a second on which a tenant starts in STARTING_S: of imports, the build
and the warm-up, and the end."""
STARTING_S = 4.0
CONTEXTS_S = 10.0
"""And on a device: contexts, and the choice of algorithms."""


def slowness(clock_s: Callable[[], float] = time.perf_counter) -> float:
    """Return how often longer a tenant takes here until it is ready than STARTING_S: half a second of compiling says.

    Importing is reading and making objects, as compiling is, and neither has threads.
    """
    source = Path(argparse.__file__).read_bytes()
    start_s, count = clock_s(), 0
    while (elapsed_s := clock_s() - start_s) < CALIBRATION_S:
        compile(source, "calibration", "exec")
        count += 1
    return COMPILED_BYTES_S * elapsed_s / (count * len(source))


def starting_s(start: Start, times: float) -> float:
    """Return the time of a launch beside its measured one, by the slowness: who shares a processor waits for it."""
    on_devices = any(spec.slice.accelerators for spec in start.specs)
    return STARTING_S * times * start.sharers + (CONTEXTS_S if on_devices else 0.0)


def usual_s(start: Start) -> float:
    """Return how long a launch measures at most where time is no matter."""
    if start.baseline == "quick":
        return QUICK_MOST_S
    if any(spec.duet is not None for spec in start.specs):
        return DUET_BUDGET_NS / 1e9
    turns = len(start.specs) if start.pairing is None else 2 * len(start.pairing.pairs)
    return turns * BUDGET_NS / 1e9


def measured_s(start: Start, limits: Limits) -> float | None:
    """Return how long a launch measures under these limits; None where its job says so by counts alone."""
    if start.baseline == "quick":
        return limits.settle_s + QUICK_KEPT_S
    if start.takes_turns:
        return limits.settle_s + (limits.budget_s or usual_s(start))
    said_s = limits.budget_s or limits.at_least_s
    return limits.settle_s + said_s if said_s else None


class Pace:
    """Shares the time of a suite among its launches: each measures as long as usual, or less where that is too long."""

    def __init__(self, within_s: float, times: float, clock_s: Callable[[], float] = time.monotonic) -> None:
        """`times`: the slowness."""
        self._times, self._clock_s = times, clock_s
        self._until_s = clock_s() + within_s - KEPT_BACK_S
        self._estimated_s = self._taken_s = 0.0

    def limits(self, limits: Limits, left: Sequence[Start]) -> Limits:
        """Return the limits of the first of the launches that are `left`."""
        return replace(limits, budget_s=self.part(left) * usual_s(left[0]))

    def part(self, left: Sequence[Start]) -> float:
        """Return for which part of its usual time each of the launches that are `left` can measure."""
        free_s = self._until_s - self._clock_s() - sum(map(self.starting_s, left))
        return min(1.0, max(LEAST_PART, free_s / sum(map(usual_s, left))))

    def took(self, start: Start, seconds: float) -> None:
        """Learn from a launch its time beside the measured one."""
        self._estimated_s += starting_s(start, self._times)
        self._taken_s += seconds

    def starting_s(self, start: Start) -> float:
        """Return the time of a launch beside its measured one, as far as those tell that have been launched."""
        corrected = self._taken_s / self._estimated_s if self._estimated_s else 1.0
        return corrected * starting_s(start, self._times)


def estimates_s(starts: Sequence[Start], limits: Limits, times: float, pace: Pace | None = None) -> list[float | None]:
    """Return how long each launch will take, None of one whose job counts its own observations."""
    part = 1.0 if pace is None else pace.part(starts)
    measuring = (measured_s(start, limits) if pace is None else part * usual_s(start) for start in starts)
    return [
        None if load_s is None else starting_s(start, times) + load_s
        for start, load_s in zip(starts, measuring, strict=True)
    ]


def crowd_words(starts: Sequence[Start], times: float) -> str:
    """Return how long tenants that share processors take until GO."""
    crowd = max(starts, key=lambda start: start.sharers)
    until_s = starting_s(crowd, times)
    return f"{crowd.sharers} users import torch on each processor: some {until_s:.0f} s until GO in each launch."
