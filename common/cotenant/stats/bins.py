"""Bins: nodes of equal hardware in two or more groups with a gap between, as by another stepping or power limit.

A group is no fault: each node is held against those of its own bin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cotenant.stats.fleet import OUTLIER, Logs, Resources, effects_of

BIN_NODES, BIN_PART = 4, 0.2
"""A bin has so many nodes at the least, and such a part of all."""
SEPARATION = 5.0
"""The distance between two bins over the standard deviation within: halves of one normal distribution have 2.6."""


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
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
