"""Over launches: the launch is the unit of repetition, and averages are over the logarithm of its median rate.

Pooling the observations of several launches instead gives a 95 % interval that covers in less than half of all cases.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance

import numpy as np
import numpy.typing as npt

from cotenant.stats.kept import ends_around
from cotenant.stats.quantiles import t_975

INTERVAL_LAUNCHES = 3
COMPARISON_LAUNCHES = 5


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
    logs = logarithms(rates).tolist()
    spread = stdev(logs) if len(logs) > 1 else None
    return AcrossLaunches(len(logs), math.exp(fmean(logs)), interval_around(fmean(logs), logs), spread)


def logarithms(rates: Sequence[float]) -> npt.NDArray[np.float64]:
    """Return the natural logarithms of rates. Raises ValueError for none, or one that is not positive."""
    if not rates or not all(0 < rate < math.inf for rate in rates):
        raise ValueError(f"rates of launches: {list(rates)}")
    return np.log(np.asarray(rates, np.float64))


def by_uid(launches: Sequence[Mapping[int, float]]) -> dict[int, list[float]]:
    """Return the values of each uid that all of these have, in their order."""
    uids = sorted(set.intersection(*map(set, launches))) if launches else []
    return {uid: [values[uid] for values in launches] for uid in uids}


def means_by_uid(logs: Sequence[Mapping[int, float]], shares: Sequence[float] | None = None) -> dict[int, float]:
    """Return the mean over benchmarks of their launches' logarithms, for each uid in which every benchmark has one.

    Launches of one uid share the state of the machine: the means of different uids err independently, and the launches
    do not. `shares` are the benchmarks' weights with a sum of 1, equal by default. `logs` has at least one benchmark.
    """
    parts = shares or [1 / len(logs)] * len(logs)
    return {uid: sum(map(operator.mul, parts, of_uid)) for uid, of_uid in by_uid(logs).items()}


def standard_error(*samples: Sequence[float]) -> tuple[float, float]:
    """Return the standard error of a sum or difference of the samples' means, and its degrees of freedom.

    These are Satterthwaite's (1946): for one sample Student's, for two Welch's. Every sample has two values or more.
    """
    parts = [(variance(sample) / len(sample), len(sample) - 1) for sample in samples]
    total = sum(part for part, _ in parts)
    if not total:
        return 0.0, sum(degrees for _, degrees in parts)
    return math.sqrt(total), total**2 / sum(part**2 / degrees for part, degrees in parts)


def half_width(values: Sequence[float]) -> float | None:
    """Return the half-width of the 95 % t interval of the mean; None for fewer than two values."""
    if len(values) < 2:
        return None
    error, freedom = standard_error(values)
    return t_975(freedom) * error


def interval_around(center: float, *logs: Sequence[float], width: float = 1.0) -> tuple[float, float] | None:
    """Return the 95 % t interval around exp(`center`), `width` times as wide as the interval of the samples' means.

    `logs` are samples of logarithms; None if one has fewer than three.
    """
    if min(map(len, logs)) < INTERVAL_LAUNCHES:
        return None
    error, freedom = standard_error(*logs)
    return ends_around(center, width * t_975(freedom) * error)
