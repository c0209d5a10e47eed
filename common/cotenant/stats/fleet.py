"""The rates of many nodes: log rate = job + node + node x resource, all by medians, and the outliers of the rest.

Healthy devices of one model differ by several percent, in all jobs alike: a limit on the rate itself would find the
slow end of the natural range. So a node's own level is tested against those of its class (nodes of equal hardware), and
the rest against the same job, and the same resource, of the other nodes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Logs = npt.NDArray[np.float64]
"""Natural logarithms of rates, NaN where there is none."""
Flags = npt.NDArray[np.bool_]
Resources = npt.NDArray[np.intp]
"""The number of each job's resource (J), -1 for none."""

LEAST_NODES = 8
"""Fewer nodes of a class do not tell their natural spread: then it is taken to be PRIOR, and all run again."""
PRIOR, PRIOR_FREEDOM = 0.03, 3
"""The standard deviation among few nodes beforehand, and as how many degrees of freedom it counts."""
ROBUST_SDS, FEW_SDS = 3.0, 2.0
OUTLIER = float(np.log1p(-0.03))
"""An outlier is further below the median than this, and than ROBUST_SDS robust standard deviations."""
RESOURCE_SDS, RESOURCE_OUTLIER = 2.0, float(np.log1p(-0.02))
"""Those of a resource: there are fewer than jobs, and a repeat that is not needed costs time only."""
_MAD = 1.4826
_CUT = 0.9866
"""The standard deviation of a normal distribution that is cut off at three of its own."""
_SWEEPS = 3
AGREE, AGREE_SHARE = 3, 0.75
"""So many nodes, and so great a part of all, have to compute the same before another is wrong."""


class Effects(NamedTuple):
    """One class of nodes: `jobs` (J), `nodes` (N), `resources` (N, R), and the `rest` (N, J) that a job has left.

    Their sum is the logarithm of a rate, but for `rest`, which still holds the effect of its job's resource: that is
    its median.
    """

    jobs: Logs
    nodes: Logs
    resources: Logs
    rest: Logs


def effects_of(logs: Logs, resources: Resources) -> Effects:
    """Return the effects in `logs` (N nodes, J jobs).

    A node's level is the median over resources of their jobs' medians, so that many jobs of one slow resource do not
    pass for the node (Tukey's median polish, 1977, with one more step).
    """
    nodes = np.zeros(len(logs))
    jobs = np.zeros(logs.shape[1])
    with empty_is_nan():
        for _ in range(_SWEEPS):
            jobs = np.nanmedian(logs - nodes[:, None], axis=0)
            nodes = levels(logs - jobs, resources)
            nodes = np.nan_to_num(nodes - np.nanmedian(nodes))
        rest = logs - jobs - nodes[:, None]
    return Effects(jobs, nodes, by_resource(rest, resources), rest)


def levels(deviations: Logs, resources: Resources) -> Logs:
    """Return each node's own level (N) in deviations from the jobs (N, J); a job without a resource stands alone."""
    with empty_is_nan():
        parts = [by_resource(deviations, resources), deviations[:, resources < 0]]
        level: Logs = np.nanmedian(np.hstack(parts), axis=1)
    return level


def by_resource(deviations: Logs, resources: Resources) -> Logs:
    """Return the medians (..., R) over the jobs of each resource in deviations (..., J)."""
    medians = np.empty((*deviations.shape[:-1], resources.max(initial=-1) + 1))
    with empty_is_nan():
        for number in range(medians.shape[-1]):
            medians[..., number] = np.nanmedian(deviations[..., resources == number], axis=-1)
    return medians


# Bins: nodes of equal hardware in two or more groups with a gap between, as by another stepping or power limit.
# A group is no fault: each node is held against those of its own bin.

BIN_NODES, BIN_PART = 4, 0.2
"""A bin has so many nodes at the least, and such a part of all."""
SEPARATION = 5.0
"""The distance between two bins over the standard deviation within: halves of one normal distribution have 2.6."""


class Bins(NamedTuple):
    """The distance of each node (N) below the fastest bin of its class: in all jobs, `levels` (N), and in one resource,
    `resources` (N, R). Logarithms; 0 where there is one bin, or it is the fastest."""

    levels: Logs
    resources: Logs

    def taken_off(self, logs: Logs, resources: Resources) -> Logs:
        """Return log rates (..., N, J) as if all nodes were of the fastest bin."""
        # The last column, of zeros, is for the jobs without a resource, whose number is -1.
        of_jobs = np.pad(self.resources, ((0, 0), (0, 1)))[:, resources]
        off: Logs = logs - self.levels[:, None] - of_jobs
        return off


def bins_of(logs: Logs, resources: Resources) -> Bins:
    """Return the bins of the nodes of one class by the log rates (N, J) of one run."""
    effects = effects_of(logs, resources)
    below = [_below(column) for column in effects.resources.T]
    return Bins(_below(effects.nodes), np.reshape(below, effects.resources.T.shape).T)


def _below(values: Logs) -> Logs:
    """Return how far the mean of each value's bin is below that of the highest one; NaN is of that one."""
    below = np.zeros(len(values))
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return below
    ordered = known[np.argsort(values[known])]
    groups = _split(values[ordered], max(BIN_NODES, int(np.ceil(BIN_PART * len(known)))))
    highest = values[ordered[groups[-1]]].mean()
    for group in groups:
        below[ordered[group]] = values[ordered[group]].mean() - highest
    return below


def _split(ordered: Logs, least: int) -> list[slice]:
    """Return the bins of ascending values, each of `least` at the least, the lowest first."""
    whole, places = [slice(0, len(ordered))], range(least, len(ordered) - least + 1)
    within = [at * ordered[:at].var() + (len(ordered) - at) * ordered[at:].var() for at in places]
    if not within:
        return whole
    at = places[int(np.argmin(within))]
    distance = ordered[at:].mean() - ordered[:at].mean()
    if distance < -OUTLIER or distance < SEPARATION * np.sqrt(min(within) / (len(ordered) - 2)):
        return whole
    upper = [slice(part.start + at, part.stop + at) for part in _split(ordered[at:], least)]
    return [*_split(ordered[:at], least), *upper]


# Outliers


class Spread(NamedTuple):
    """The natural spread among nodes, for each column: `middle`, the standard deviation `sd`, its degrees of `freedom`,
    and which values are `low` (N, ...): outliers."""

    middle: Logs
    sd: Logs
    freedom: Logs
    low: Flags


def spread_of(values: Logs, robust_sds: float = ROBUST_SDS, outlier: float = OUTLIER) -> Spread:
    """Return the spread of each column of `values` (N, ...) over nodes, of those that are no outliers to either side.

    First the median absolute deviation says which are; the standard deviation of the others is nearly as exact as that
    of all would be, where the former has the worth of a third of the nodes. Of few nodes all columns have one, with
    the PRIOR as if it came of so many nodes more.
    """
    with empty_is_nan():
        middle = np.nanmedian(values, axis=0)
        away = values - middle
        robust = _MAD * np.nanmedian(np.abs(away), axis=0)
        limit = FEW_SDS * PRIOR if len(values) < LEAST_NODES else np.maximum(ROBUST_SDS * robust, -OUTLIER)
        usual = np.where(np.abs(away) <= limit, away, np.nan)
        sd = np.nanstd(usual, axis=0, ddof=1) / _CUT
    freedom = np.maximum(np.sum(~np.isnan(usual), axis=0) - 1.0, 0.0)
    if len(values) < LEAST_NODES:
        squares = np.nansum(freedom * np.nan_to_num(sd) ** 2) + PRIOR_FREEDOM * PRIOR**2
        freedom = np.full_like(freedom, freedom.sum() + PRIOR_FREEDOM)
        sd = np.sqrt(squares / freedom)
    return Spread(middle, sd, freedom, away < np.minimum(-robust_sds * robust, outlier))


class Screening(NamedTuple):
    """One class after one run of every node: effects, their natural spread, and the nodes to run again."""

    effects: Effects
    levels: Spread
    resources: Spread
    cells: Spread

    @property
    def few(self) -> bool:
        """Whether the nodes are too few to tell their natural spread."""
        return len(self.effects.nodes) < LEAST_NODES

    @property
    def outliers(self) -> Flags:
        """The nodes (N) with an outlier: their level, a resource or a job."""
        return self.levels.low | self.resources.low.any(axis=1) | self.cells.low.any(axis=1)

    @property
    def suspects(self) -> Flags:
        """The nodes (N) that have to run again: those with an outlier; of few nodes all."""
        return self.outliers | self.few


def screen(logs: Logs, resources: Resources) -> Screening:
    """Return the outliers among the nodes of one class, which have to run again before anything is held against them.

    `logs` (N, J) are of one run of each job on each node.
    """
    effects = effects_of(logs, resources)
    of_resources = spread_of(effects.resources, RESOURCE_SDS, RESOURCE_OUTLIER)
    return Screening(effects, spread_of(effects.nodes), of_resources, spread_of(effects.rest))


@contextmanager
def empty_is_nan() -> Iterator[None]:
    """Take the median or spread of nothing for unknown, without numpy's warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice|Mean of empty slice|Degrees of freedom", RuntimeWarning)
        yield


def minority(digests: npt.NDArray[np.str_]) -> Flags:
    """Return which of the nodes (N) computed something else than nearly all others; "" is not known.

    AGREE nodes have to, and AGREE_SHARE of those that are known: of work that does not repeat, or that two builds do in
    two ways, nobody knows who is right.
    """
    known = digests[digests != ""]
    values, counts = np.unique(known, return_counts=True)
    if counts.max(initial=0) < max(AGREE, AGREE_SHARE * len(known)):
        return np.zeros(len(digests), np.bool_)
    other: Flags = (digests != "") & (digests != values[counts.argmax()])
    return other
