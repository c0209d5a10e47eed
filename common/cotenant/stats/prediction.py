"""What jobs keep in pairs, predicted from what each was measured to be beside neighbours of known pressure.

Bubble-Up (Mars, Tang, Hundt, Skadron and Soffa, MICRO 2011): a job's curve says what it keeps under a pressure, and a
probe whose own curve is known says which pressure a neighbour is. So N jobs take 2 N measurements, not N (N + 1) / 2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

import numpy as np

from cotenant.stats.launches import INTERVAL_LAUNCHES, t_quantile
from cotenant.stats.sensitivity import Round, mean_of

Rule = Literal["largest", "product"]
RULES: tuple[Rule, ...] = ("largest", "product")
"""How the losses of several resources make one: the largest alone, or what each leaves of the rest."""
Pair = tuple[str, str]
"""A victim and its neighbour."""
PROBE = ""
"""The name of the probe among jobs."""
Samples = Mapping[tuple[int, str], Sequence[Round]]
"""By resource and job."""
FULL = 100
"""The level of a probe."""
FITTED = 3
"""Every third pair decides the rule, the others say how far it errs."""


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
class Value:
    """An estimate with its 95 % jackknife interval; None where a sample has fewer than three values."""

    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Taken:
    """What a job takes of a resource: `probe` is what a probe keeps beside it.

    `level` is that of a neighbour beside which the probe keeps as much, in percent, and `amount` what this neighbour
    gets of the resource a second; None where the probe shows no loss at any level. `beyond`: it keeps less than beside
    the highest one, which is then the least that a job is.
    """

    probe: Value
    level: float | None
    amount: float | None
    beyond: bool


@dataclass(frozen=True, slots=True)
class Fit:
    """The `rule` that errs least on the pairs `of`; `error` is the mean distance from the others, and `constant` that
    of the mean of the pairs `of`, which knows nothing of jobs. Both are shares of the rate alone."""

    rule: Rule
    of: tuple[Pair, ...]
    others: int
    error: float
    worst: float
    constant: float


def taken(of: Sensed, job: str) -> Taken:
    """Return what a job takes of a resource. Raises KeyError for one that was not measured on it."""
    samples = {(0, job): of.jobs[job], (0, PROBE): of.probe}
    share = _estimate(lambda chosen: _kept_by_probe(chosen[0, job], chosen[0, PROBE]), samples)
    if not of.known:
        return Taken(share, None, None, beyond=False)
    points, achieved = falling(of.probe), mean_of(of.probe).achieved
    level = level_at(points, share.value)
    return Taken(share, level, float(np.interp(level, [*achieved], [*achieved.values()])), share.value < points[-1][1])


def predicted(resources: Sequence[Sensed], pair: Pair, rule: Rule) -> Value | None:
    """Return what a victim keeps beside a neighbour; None where a resource was not measured of one of them.

    A resource counts where the probe's curve shows a loss: else what a neighbour takes of it is not known.
    """
    if not _is_known(resources, pair):
        return None
    return _estimate(lambda samples: _combined(_shares(samples, pair), rule), _samples(resources, pair))


def _is_known(resources: Sequence[Sensed], pair: Pair) -> bool:
    return bool(resources) and all(job in of.jobs for of in resources for job in pair)


def _samples(resources: Sequence[Sensed], pair: Pair) -> Samples:
    """Return the samples of every resource that counts: of both jobs and of the probe. A job beside itself is one."""
    return {
        (number, name): sample
        for number, of in enumerate(resources)
        if of.known
        for name, sample in ((PROBE, of.probe), *((job, of.jobs[job]) for job in pair))
    }


def _shares(samples: Samples, pair: Pair) -> list[float]:
    """Return what the victim keeps of each resource."""
    victim, neighbour = pair
    shares = []
    for number in sorted({number for number, _ in samples}):
        probe = samples[number, PROBE]
        level = level_at(falling(probe), _kept_by_probe(samples[number, neighbour], probe))
        shares.append(kept_at(falling(samples[number, victim]), level))
    return shares


def fit(resources: Sequence[Sensed], measured: Mapping[Pair, float]) -> Fit | None:
    """Return the rule that a third of the measured pairs prefers, and how far it errs on the others.

    Both directions of a launch belong together. None where there are fewer than three launches of pairs that can be
    predicted: then nothing is left to err on.
    """
    launches: dict[frozenset[str], list[Pair]] = {}
    for pair in measured:
        if _is_known(resources, pair):
            launches.setdefault(frozenset(pair), []).append(pair)
    if len(launches) < FITTED:
        return None
    ordered = [*launches.values()]
    of = [pair for pairs in ordered[::FITTED] for pair in pairs]
    others = [pair for number, pairs in enumerate(ordered) if number % FITTED for pair in pairs]

    shares = {pair: _shares(_samples(resources, pair), pair) for pair in (*of, *others)}

    def errors(rule: Rule, pairs: Iterable[Pair]) -> list[float]:
        return [abs(_combined(shares[pair], rule) - measured[pair]) for pair in pairs]

    rule = min(RULES, key=lambda each: fmean(errors(each, of)))
    distances, mean = errors(rule, others), fmean(measured[pair] for pair in of)
    constant = fmean(abs(mean - measured[pair]) for pair in others)
    return Fit(rule, tuple(of), len(others), fmean(distances), max(distances), constant)


Points = Sequence[tuple[float, float]]
"""A curve: levels in rising order, and what is kept beside each, which never rises."""


def falling(samples: Sequence[Round]) -> Points:
    """Return the curve of some samples: their means, held to never rise (isotonic regression) and to begin at 1.

    It is over the level, which is what a neighbour asks for: what it gets of that depends on who stands beside it.
    """
    from scipy.optimize import isotonic_regression  # for curves alone: most reports have none

    logs = sorted(mean_of(samples).logs.items())
    regression = isotonic_regression(np.array([math.exp(log) for _, log in logs]), increasing=False).x
    shares = [1.0, *(min(1.0, float(share)) for share in regression[1:])]
    return [(float(level), share) for (level, _), share in zip(logs, shares, strict=True)]


def kept_at(points: Points, level: float) -> float:
    """Return what is kept beside a level, by straight lines between the points; beyond the last what is kept there."""
    return float(np.interp(level, [at for at, _ in points], [share for _, share in points]))


def level_at(points: Points, share: float) -> float:
    """Return the least level beside which no more is kept; that of the last point where this is never so."""
    for (before, more), (after, less) in itertools.pairwise(points):
        if less <= share:
            return before if share >= more else before + (after - before) * (more - share) / (more - less)
    return points[-1][0]


def _kept_by_probe(job: Sequence[Round], probe: Sequence[Round]) -> float:
    """Return what the neighbour at the probe's level gets beside a job, over what a probe gets beside a resting one."""
    return mean_of(job).achieved[FULL] / mean_of(probe).base


def _combined(shares: Sequence[float], rule: Rule) -> float:
    return min(shares, default=1.0) if rule == "largest" else math.prod(shares)


def _estimate(of: Callable[[Samples], float], samples: Samples) -> Value:
    """Return an estimate from several independent samples, with the interval of the delete-one jackknife (Tukey, 1958;
    for several samples Arvesen, 1969) on its logarithm; degrees of freedom are Satterthwaite's (1946)."""
    value = of(samples)
    if value <= 0 or not samples or any(len(sample) < INTERVAL_LAUNCHES for sample in samples.values()):
        return Value(value, None)
    parts = []
    for name, sample in samples.items():
        without = [math.log(of({**samples, name: [*sample[:at], *sample[at + 1 :]]})) for at in range(len(sample))]
        degrees, middle = len(sample) - 1, fmean(without)
        parts.append((degrees / len(sample) * sum((log - middle) ** 2 for log in without), degrees))
    variance = sum(part for part, _ in parts)
    if not variance:
        return Value(value, (value, value))
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    half = t_quantile(freedom) * math.sqrt(variance)
    return Value(value, (value * math.exp(-half), value * math.exp(half)))
