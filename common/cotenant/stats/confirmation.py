"""Outliers among nodes, run again beside healthy ones: how slow they are, and whether chance or nature explains it.

The run that raised a flag does not count a second time: it was chosen for being extreme.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special

from cotenant.stats.fleet import PRIOR, Flags, Logs, Screening, Spread, by_resource, empty_is_nan, levels
from cotenant.stats.kept import CONFIDENCE

ROUNDS = 3
HEALTHY = 3
"""How often an outlier runs again, and beside how many healthy nodes."""
SLOW, DEFECT = float(np.log1p(-0.02)), float(np.log1p(-0.05))
"""Where the upper end of the 95 % interval has to lie below."""
_MEDIAN = float(np.pi / 2)
"""The variance of a median over that of a mean."""
TAIL_NODES = 10
"""The tail of a class is held to be as long as so many nodes can tell, however many there are."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One kind of effect, of N nodes, over all rounds: `effect`, half of its 95 % interval, the chance `p` of such a
    one among healthy nodes, and in how many `rounds` it was below SLOW again. All (N, k).

    `sd` is the standard deviation among healthy nodes, repeats included, and `freedom` (k) its degrees of freedom.
    """

    effect: Logs
    half_width: Logs
    p: Logs
    rounds: npt.NDArray[np.intp]
    sd: Logs
    freedom: Logs

    @property
    def upper(self) -> Logs:
        """The upper end of the 95 % interval."""
        return self.effect + self.half_width


@dataclass(frozen=True, slots=True, eq=False)
class Confirmation:
    """The rounds' result on each node (N) of a class: its level (N, 1), its resources (N, R), its jobs (N, J).

    `noise` (J) is the standard deviation of a job's repeats on healthy nodes; `own` (N) that of a node as a multiple of
    it, by the median over its jobs, and `runs` (N) is how many rounds it took part in: 0 where most of its jobs did not
    run twice.
    """

    levels: Part
    resources: Part
    cells: Part
    noise: Logs
    own: Logs
    runs: npt.NDArray[np.intp]


def confirm(screening: Screening, rounds: Logs, resources: npt.NDArray[np.intp]) -> Confirmation | None:
    """Return the confirmation of the nodes with an outlier by `rounds` (K, N, J) of log rates, NaN where nothing ran.

    The healthy nodes that ran in the same round tell the change since the screening, which is taken off; of few
    nodes, none of which was chosen, all do. None where fewer than two rounds have two healthy nodes of the same job.
    """
    effects, suspects = screening.effects, screening.suspects
    healthy = rounds if screening.few else np.where(suspects[None, :, None], np.nan, rounds)
    beside = np.sum(~np.isnan(healthy), axis=1)
    if len(rounds) < 2:
        return None
    noise, freedom = _noise(healthy, beside)
    again = ~np.isnan(noise)
    if not again.any():
        return None
    once = noise**2
    nature = np.maximum(screening.cells.sd**2 - once, 0)
    lasting = nature / np.maximum(nature + once, np.finfo(float).tiny)
    known = effects.jobs + effects.nodes[:, None] + lasting * effects.rest
    with empty_is_nan():
        drift = np.where(beside > 1, np.nanmedian(healthy - known, axis=1), np.nan)
        deviations = rounds - effects.jobs - drift[:, None, :]
        runs = np.sum(~np.isnan(deviations), axis=0)
        # F-distributed where the node is as the others. Of few repeats its tail is long, and a mean would follow that.
        spreads = np.nanvar(deviations, axis=0, ddof=1) / once
        usual = special.fdtri(np.maximum(runs - 1, 1), freedom, 0.5)
        own = np.sqrt(np.nanmedian(spreads / usual, axis=1))
        usually = np.nanmedian(np.where(np.isnan(effects.rest), np.nan, runs), axis=1)
        level = levels(np.nanmean(deviations, axis=0), resources)
        left = deviations - level[:, None]
        means = np.nanmean(left, axis=0)
    # A node that varies more than the healthy ones is not known better than its own repeats tell.
    repeats = once / np.maximum(runs, 1) * np.maximum(np.nan_to_num(own), 1)[:, None] ** 2
    variance = repeats + _MEDIAN * (repeats + lasting * once) / np.maximum(np.median(beside, axis=0), 1)
    groups = [again, *(again & (resources == number) for number in range(resources.max(initial=-1) + 1))]
    free = freedom * np.sum(groups, axis=1)
    of_level, of_resources = _of_medians(variance, groups)
    # The noise of one run is part of the spread of the screening.
    level_once, resources_once = _of_medians(once[None], groups)
    each = np.stack([levels(of_round, resources) for of_round in deviations])[..., None]
    of_levels = _part(each, level[:, None], of_level, free[:1], screening.levels, level_once)
    if not screening.few:
        tail = _tail_chance(effects.nodes, of_levels.effect[:, 0])
        of_levels = replace(of_levels, p=np.maximum(of_levels.p, tail[:, None]))
    of_resource, of_means = by_resource(left, resources), by_resource(means, resources)
    once_each = level_once + resources_once
    return Confirmation(
        levels=of_levels,
        resources=_part(of_resource, of_means, of_level + of_resources, free[1:], screening.resources, once_each),
        cells=_part(left, means, variance + of_level, freedom, screening.cells, once + level_once),
        noise=noise,
        own=own,
        runs=np.where(usually > 1, runs.max(axis=1, initial=0), 0),
    )


def _noise(healthy: Logs, beside: npt.NDArray[np.intp]) -> tuple[Logs, float]:
    """Return the standard deviation of each job's repeats (J), and its degrees of freedom, the least of any job.

    Of the log rates (K, N, J) of healthy nodes: of each the distance from its own mean, and from the median change. NaN
    for a job without repeats in two rounds: nothing is known of it, and the other jobs do not count it.
    """
    with empty_is_nan():
        within = healthy - np.nanmean(healthy, axis=0)
        within = within - np.nanmedian(within, axis=1)[:, None, :]
        squares = np.nansum(within**2, axis=(0, 1))
    repeats = np.sum(np.maximum(np.sum(~np.isnan(healthy), axis=0) - 1, 0), axis=0)
    # The change was taken from the same nodes: of few it follows them.
    free = repeats * (1 - 1 / np.maximum(np.median(beside, axis=0), 2))
    known = (repeats > 0) & (np.sum(beside > 1, axis=0) > 1)
    noise = np.where(known, np.sqrt(squares / np.maximum(free, 1)), np.nan)
    return noise, float(max(free[known].min(initial=np.inf), 1))


def _of_medians(variance: Logs, groups: Sequence[Flags]) -> list[Logs]:
    """Return the variance of the median over the jobs of the first group (N, 1) and of each other one (N, R), from that
    of each job (N, J)."""
    of_groups = np.full((len(variance), len(groups)), np.nan)
    for at, members in enumerate(groups):
        if count := np.sum(members):
            of_groups[:, at] = (_MEDIAN if count > 2 else 1.0) * variance[:, members].mean(axis=1) / count
    return np.split(of_groups, [1], axis=1)


def _tail_chance(nodes: Logs, effect: Logs) -> Logs:
    """Return the chance (N) of such levels where the slow end of the class is as an exponential tail.

    Its scale is the mean distance of the other slower nodes from the median, the PRIOR at the least; so the chance is
    that of a Pareto tail (an F with 2 and 2 m degrees of freedom).
    """
    below = np.maximum(np.median(nodes) - nodes, 0)
    others: Logs = np.sum(below > 0) - (below > 0)
    scale = np.maximum((below.sum() - below) / np.maximum(others, 1), PRIOR)
    freedom = np.minimum(others + 1, TAIL_NODES)
    chance: Logs = (1 + np.maximum(-np.nan_to_num(effect), 0) / scale / freedom) ** -freedom / 2
    return chance


def _part(rounds: Logs, effect: Logs, variance: Logs, freedom: float | Logs, nature: Spread, once: Logs) -> Part:
    """Return the part of these effects by round (K, N, k), and over all of them (N, k).

    The chance p takes all rounds for one run of a healthy node: its lasting peculiarity, which every repeat shows
    again, is no proof of a fault. `once` (k) is the noise in the variance of nature; it is taken off, but not the
    error of that variance itself.
    """
    middle, sd, free = (np.atleast_1d(each) for each in (nature.middle, nature.sd, nature.freedom))
    lasting = np.maximum(sd**2 - np.nan_to_num(once), 0) + sd**2 * np.sqrt(2 / np.maximum(free, 1))
    healthy = np.sqrt(lasting + variance)
    quantile = special.stdtrit(freedom, (1 + CONFIDENCE) / 2)
    return Part(
        effect=effect - middle,
        half_width=quantile * np.sqrt(variance),
        p=np.where(free > 0, special.stdtr(np.maximum(free, 1), (effect - middle) / healthy), 1.0),
        rounds=np.sum(rounds - middle < SLOW, axis=0),
        sd=healthy,
        freedom=free,
    )
