"""Tells how much of a resource a job takes by the rate that a probe, whose own curve is known, keeps beside it.

Bubble-Up (Mars, Tang, Hundt, Skadron and Soffa, MICRO 2011).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from cotenant.stats.launches import interval_around
from cotenant.stats.sensitivity import Round, mean_of

FULL = 100
"""The level of a probe."""


@dataclass(frozen=True, slots=True)
class Sensed:
    """The samples of one resource: of each job's curve, and of the `probe`'s, both beside the same neighbour, which was
    at FULL level in each sample.

    `known` is whether the probe's curve shows a loss: else nothing that a neighbour takes can be told by it.
    """

    unit: str
    jobs: Mapping[str, Sequence[Round]]
    probe: Sequence[Round]
    known: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """A job's use of a resource: `kept` is the share that a probe keeps beside it, with Welch's 95 % interval, None
    where a sample has fewer than three values.

    `level` is that of a neighbour beside which the probe keeps as much, in percent, and `amount` what this neighbour
    gets of the resource a second; None where the probe shows no loss at any level. `beyond`: it keeps less than beside
    the highest one, which is then the least that a job is.
    """

    kept: float
    interval: tuple[float, float] | None
    level: float | None
    amount: float | None
    beyond: bool


def taken(of: Sensed, job: str) -> Taken:
    """Return a job's use of a resource. Raises KeyError for one that was not measured on it."""
    kept = _kept_by_probe(of.jobs[job], of.probe)
    rates = [_achieved(of.jobs[job]), [each.base for each in of.probe]]
    logs = [[math.log(rate) for rate in of_each if rate] for of_each in rates]
    interval = interval_around(math.log(kept), *logs) if kept else None
    if not of.known:
        return Taken(kept, interval, None, None, beyond=False)
    points, achieved = falling(of.probe), mean_of(of.probe).achieved
    level = level_at(points, kept)
    return Taken(
        kept, interval, level, float(np.interp(level, [*achieved], [*achieved.values()])), kept < points[-1][1]
    )


Points = Sequence[tuple[float, float]]
"""A curve: levels in rising order, and the kept share beside each, which never rises."""


def falling(samples: Sequence[Round]) -> Points:
    """Return the curve of some samples: their means, held to never rise (isotonic regression) and to begin at 1.

    It is over the level, which is what a neighbour asks for: what it gets of that depends on who stands beside it.
    """
    from scipy.optimize import isotonic_regression  # for curves alone: most reports have none

    logs = sorted(mean_of(samples).logs.items())
    regression = isotonic_regression(np.array([math.exp(log) for _, log in logs]), increasing=False).x
    shares = [1.0, *(min(1.0, float(share)) for share in regression[1:])]
    return [(float(level), share) for (level, _), share in zip(logs, shares, strict=True)]


def level_at(points: Points, share: float) -> float:
    """Return the least level beside which no more is kept; that of the last point where this is never so."""
    for (before, more), (after, less) in itertools.pairwise(points):
        if less <= share:
            return before if share >= more else before + (after - before) * (more - share) / (more - less)
    return points[-1][0]


def kept_beside(of: Sensed, victim: str, neighbour: str) -> float:
    """Return what a victim keeps by its curve: what it loses beside our neighbour at full level, times what a probe
    loses beside the other job. Raises KeyError for a job that was not measured on the resource."""
    lost = 1 - falling(of.jobs[victim])[-1][1]
    return 1 - lost * min(1.0, max(0.0, 1 - _kept_by_probe(of.jobs[neighbour], of.probe)))


def _kept_by_probe(job: Sequence[Round], probe: Sequence[Round]) -> float:
    """Return what the neighbour at the probe's level gets beside a job, over what a probe gets beside a resting one."""
    return fmean(_achieved(job)) / mean_of(probe).base


def _achieved(job: Sequence[Round]) -> list[float]:
    return [each.achieved[FULL] for each in job]
