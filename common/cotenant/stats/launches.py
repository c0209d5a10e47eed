"""Over launches: the launch is the unit of repetition, and what is averaged is the logarithm of its median rate.

Pooling the observations of several launches instead gives an interval that covers a third of what it says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev

import numpy as np
import numpy.typing as npt
from scipy import special

INTERVAL_LAUNCHES = 3
COMPARISON_LAUNCHES = 5
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class AcrossLaunches:
    """The geometric mean of `n` launches' rates, its 95 % t interval (None below three), and the spread between them.

    `spread` is the standard deviation of the rates' logarithms: 0.01 is about one percent.
    """

    n: int
    rate: float
    interval: tuple[float, float] | None
    spread: float | None


def across_launches(rates: Sequence[float]) -> AcrossLaunches:
    """Describe one rate per launch. Raises ValueError for none, or one that is not positive."""
    logs = logarithms(rates)
    n, center = len(logs), float(logs.mean())
    spread = float(logs.std(ddof=1)) if n > 1 else None
    if spread is None or n < INTERVAL_LAUNCHES:
        return AcrossLaunches(n, math.exp(center), None, spread)
    half = t_quantile(n - 1) * spread / math.sqrt(n)
    return AcrossLaunches(n, math.exp(center), (math.exp(center - half), math.exp(center + half)), spread)


def t_quantile(freedom: float) -> float:
    """Return the t (Student, 1908) that leaves a half of 1 - CONFIDENCE above it."""
    # What scipy.stats.t.ppf returns; that module takes a second to import.
    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2))


def logarithms(rates: Sequence[float]) -> npt.NDArray[np.float64]:
    """Return the natural logarithms of rates. Raises ValueError for none, or one that is not positive."""
    if not rates or not all(0 < rate < math.inf for rate in rates):
        raise ValueError(f"rates of launches: {list(rates)}")
    return np.log(np.asarray(rates, np.float64))


def means_by_uid(logs: Sequence[Mapping[int, float]], shares: Sequence[float] | None = None) -> dict[int, float]:
    """Return the mean over benchmarks of their launches' logarithms, of each uid in which every benchmark has one.

    Launches of one uid share the state of the machine: over benchmarks these means err independently, and the launches
    do not. `shares` are the benchmarks' weights, whose sum is 1; equal where none are given. `logs` are of one or more.
    """
    parts = shares or [1 / len(logs)] * len(logs)
    uids = sorted(set.intersection(*(set(benchmark) for benchmark in logs)))
    return {uid: sum(part * benchmark[uid] for part, benchmark in zip(parts, logs, strict=True)) for uid in uids}


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
