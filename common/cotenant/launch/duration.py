"""The time of a suite: its estimate before the start, and the pace that keeps to a given time.

A launch takes the time until its tenants are ready, which depends on the processor, and the time that it measures,
which a budget sets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from cotenant.launch.alone import QUICK_KEPT_S
from cotenant.launch.limits import Limits
from cotenant.launch.planned import PlannedLaunch

MOST_S, KEPT_BACK_S = 600.0, 60.0
"""The time of a suite without a set measuring time, and the part of it for data and tables."""
LEAST_PART = 0.4
"""A launch has at least this share of its usual time, even if the suite then takes too long."""
CALIBRATION_S = 0.5
COMPILED_BYTES_S = 7.3e6
"""Bytes of Python compiled in a second by a processor on which a tenant's imports, build, warm-up and end take
STARTING_S."""
STARTING_S = 4.0
CONTEXTS_S = 10.0
"""Further seconds of a launch on devices: contexts, and the choice of algorithms."""


def slowness(clock_s: Callable[[], float] = time.perf_counter) -> float:
    """Return a tenant's unmeasured time on this host over STARTING_S, from half a second of compiling.

    Compiling stands for importing: both read and make objects on a single thread.
    """
    source = Path(argparse.__file__).read_bytes()
    start_s, count = clock_s(), 0
    while (elapsed_s := clock_s() - start_s) < CALIBRATION_S:
        compile(source, "calibration", "exec")
        count += 1
    return COMPILED_BYTES_S * elapsed_s / (count * len(source))


def starting_s(launch: PlannedLaunch, times: float) -> float:
    """Return a launch's seconds without the measured ones; `times` is the slowness. Sharers of a processor wait."""
    on_devices = any(spec.slice.accelerators for spec in launch.specs)
    return STARTING_S * times * launch.sharers + (CONTEXTS_S if on_devices else 0.0)


def usual_s(launch: PlannedLaunch) -> float:
    """Return the most seconds that a launch measures if the suite's time is not limited."""
    return launch.design.usual_ns(len(launch.specs)) / 1e9


def measured_s(launch: PlannedLaunch, limits: Limits) -> float | None:
    """Return the seconds that a launch measures under these limits; None if its job only gives counts."""
    if launch.design.takes_turns:
        return limits.settle_s + (limits.budget_s or usual_s(launch))
    said_s = limits.budget_s or limits.at_least_s
    return limits.settle_s + said_s + QUICK_KEPT_S * len(launch.goes_on) if said_s else None


class Pace:
    """Shares the time of a suite among its launches: each measures as long as usual, or less if time is short."""

    def __init__(self, within_s: float, times: float, clock_s: Callable[[], float] = time.monotonic) -> None:
        """Begin a suite's time; `times` is the result of `slowness`."""
        self._times, self._clock_s = times, clock_s
        self._until_s = clock_s() + within_s - KEPT_BACK_S
        self._estimated_s = self._taken_s = 0.0

    def limits(self, limits: Limits, left: Sequence[PlannedLaunch]) -> Limits:
        """Return the limits of the first of the launches that are `left`."""
        return replace(limits, budget_s=self.part(left) * usual_s(left[0]))

    def part(self, left: Sequence[PlannedLaunch]) -> float:
        """Return the part of its usual time that each of the launches in `left` can measure."""
        free_s = self._until_s - self._clock_s() - sum(map(self.starting_s, left))
        return min(1.0, max(LEAST_PART, free_s / sum(map(usual_s, left))))

    def took(self, launch: PlannedLaunch, seconds: float) -> None:
        """Learn a launch's seconds without the measured ones."""
        self._estimated_s += starting_s(launch, self._times)
        self._taken_s += seconds

    def starting_s(self, launch: PlannedLaunch) -> float:
        """Return a launch's estimated seconds without the measured ones, corrected by the launches so far."""
        corrected = self._taken_s / self._estimated_s if self._estimated_s else 1.0
        return corrected * starting_s(launch, self._times)


def estimates_s(
    starts: Sequence[PlannedLaunch], limits: Limits, times: float, pace: Pace | None = None
) -> list[float | None]:
    """Return the estimated seconds of each launch; None if its job counts its own observations."""
    part = 1.0 if pace is None else pace.part(starts)
    measuring = (measured_s(launch, limits) if pace is None else part * usual_s(launch) for launch in starts)
    return [
        None if load_s is None else starting_s(launch, times) + load_s
        for launch, load_s in zip(starts, measuring, strict=True)
    ]


def crowd_words(starts: Sequence[PlannedLaunch], times: float) -> str:
    """Return the sentence on the seconds until GO of tenants that share processors."""
    crowd = max(starts, key=lambda start: start.sharers)
    until_s = starting_s(crowd, times)
    return f"{crowd.sharers} users import torch on each processor: some {until_s:.0f} s until GO in each launch."
