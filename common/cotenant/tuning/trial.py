"""A setting of a job, and the results of its launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from cotenant.stats.kept import ends_around
from cotenant.stats.launches import interval_around, t_quantile
from cotenant.suite.variables import Value

TOO_LARGE = frozenset({"out_of_memory", "host_out_of_memory", "device_out_of_memory", "timeout"})
"""Outcomes that every larger batch would have as well."""
USUAL_SPREAD, WEIGHT = 0.01, 4
"""The prior standard deviation of log rates between equal launches, and the number of repetitions it counts as."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A batch size, and further flags with their values; all else is as in the job."""

    batch_size: int
    flags: tuple[tuple[str, Value], ...] = ()

    def with_flag(self, flag: str, value: Value) -> Setting:
        """Return the setting with one more flag, or with another value of it."""
        return replace(self, flags=(*(pair for pair in self.flags if pair[0] != flag), (flag, value)))

    def __str__(self) -> str:
        return " ".join([f"batch {self.batch_size}", *(f"{flag} {value}".rstrip() for flag, value in self.flags)])


@dataclass(frozen=True, slots=True)
class Trial:
    """One launch of a setting: the rate of all tenants together in items a second, or None and the outcome."""

    setting: Setting
    rate: float | None
    outcome: str = "completed"
    message: str = ""
    seconds: float = 0.0
    items: float | None = None
    """Items that all tenants together count in a step; None if unknown."""

    @property
    def too_large(self) -> bool:
        """Whether its batch did not fit, or its steps took too long."""
        return self.rate is None and self.outcome in TOO_LARGE


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """The geometric mean of `n` launches of a setting; its 95 % interval is None where no setting was repeated."""

    rate: float
    n: int
    interval: tuple[float, float] | None


def logs_by_setting(trials: Sequence[Trial]) -> dict[Setting, list[float]]:
    """Return the logarithms of the rates by setting, in the order of their first launches.

    A setting with a launch that did not fit has none, since it is not reliable.
    """
    refused = {trial.setting for trial in trials if trial.too_large}
    logs: dict[Setting, list[float]] = {}
    for trial in trials:
        if trial.rate is not None and trial.setting not in refused:
            logs.setdefault(trial.setting, []).append(math.log(trial.rate))
    return logs


def spread_of(logs: dict[Setting, list[float]]) -> tuple[float | None, int]:
    """Return the standard deviation between equal launches, pooled over repeated settings, and its freedom."""
    squares = sum((each - fmean(of)) ** 2 for of in logs.values() for each in of)
    freedom = sum(len(of) - 1 for of in logs.values())
    return (math.sqrt(squares / freedom) if freedom else None), freedom


def assumed_spread(logs: dict[Setting, list[float]]) -> float:
    """Return the spread that decisions assume: the usual one, corrected by the results so far."""
    seen, freedom = spread_of(logs)
    squares = WEIGHT * USUAL_SPREAD**2 + freedom * (seen or 0.0) ** 2
    return math.sqrt(squares / (WEIGHT + freedom))


def estimates(trials: Sequence[Trial]) -> dict[Setting, StepEstimate]:
    """Return the rate of each setting that has one; their intervals share the spread of all repeated settings."""
    logs = logs_by_setting(trials)
    spread, freedom = spread_of(logs)
    by_setting = {}
    for setting, of in logs.items():
        middle, interval = fmean(of), None
        if spread is not None:
            interval = ends_around(middle, t_quantile(freedom) * spread / math.sqrt(len(of)))
        by_setting[setting] = StepEstimate(math.exp(middle), len(of), interval)
    return by_setting


def gain(trials: Sequence[Trial], base: Setting, best: Setting) -> StepEstimate | None:
    """Return the rate of `best` over that of `base` with Welch's interval, `n` being the launches of both.

    None if one has no rate.
    """
    logs = logs_by_setting(trials)
    if base not in logs or best not in logs:
        return None
    if base == best:
        return StepEstimate(1.0, len(logs[base]), None)
    sides = logs[best], logs[base]
    middle = fmean(sides[0]) - fmean(sides[1])
    return StepEstimate(math.exp(middle), sum(map(len, sides)), interval_around(middle, *sides))
