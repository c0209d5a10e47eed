"""From confirmed outliers to a verdict on each node: the charges against it, and the evidence for each."""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from cotenant.stats.confirmation import DEFECT, SLOW, Confirmation, Part
from cotenant.stats.fleet import PRIOR, ROBUST_SDS, Flags, Logs, Screening

FALSE_DISCOVERIES = 0.01
P_JOB = 0.01
"""The chance below which one job of a slow resource speaks for it."""
INDEPENDENT_JOBS = 2
STEADY = 0.01
"""A job whose repeats spread by more condemns nobody alone."""
UNSEEN = float(np.log1p(-0.1))
"""Where nodes are few, one is accepted only if a resource that is so much slower would have been seen."""
RESTLESS = 2.0
"""A node whose repeats spread by so many times those of healthy nodes is unstable."""


class NodeVerdict(enum.StrEnum):
    """The verdict on a node. SUSPECT is an outlier that has not run again beside healthy nodes, UNTESTED one of few
    nodes that could be slow without being seen, BIN one of a slower group of nodes, which is no fault."""

    ACCEPT = "ACCEPT"
    BIN = "BIN"
    UNTESTED = "UNTESTED"
    SUSPECT = "SUSPECT"
    SLOW = "SLOW"
    DEFECT = "DEFECT"
    UNSTABLE = "UNSTABLE"
    ABSENT = "ABSENT"


class Charge(NamedTuple):
    """One thing that is held against a node, by numbers of its class: a `resource`, a `job`, or neither: its level.

    `ratio` is its rate over that of healthy nodes, with the 95 % `interval`; `rounds` is how many repeats of `runs`
    showed it again. A SUSPECT has no interval, and its ratio is that of the screening; that of an UNTESTED one is the
    largest that would have been seen.
    """

    node: int
    verdict: NodeVerdict
    ratio: float
    interval: tuple[float, float] | None = None
    rounds: int = 0
    runs: int = 0
    resource: int | None = None
    job: int | None = None


def charges(
    screening: Screening,
    confirmation: Confirmation | None,
    resources: npt.NDArray[np.intp],
    works: npt.NDArray[np.intp],
) -> list[Charge]:
    """Return the charges against the nodes of one class, the worst of a node first.

    `resources` has each job's (J), -1 for none; `works` (J) is equal for jobs that are not independent, as one model
    in two precisions. A suspect that has not run again is charged with its outliers, as SUSPECT, or is UNTESTED.
    """
    suspects = screening.suspects
    untried = suspects if confirmation is None else suspects & (confirmation.runs < 2)
    made = [_suspicion(screening, node) for node in _numbers(untried)]
    if confirmation is None:
        return made
    tried = suspects & ~untried
    of_level, of_resources, of_cells = rejected(confirmation, tried)
    least = least_seen(confirmation.resources if (resources >= 0).any() else confirmation.cells)
    for node in _numbers(tried):
        agreeing = confirmation.cells.p[node] < P_JOB
        named = [
            number
            for number in _numbers(of_resources[node])
            if len(np.unique(works[agreeing & (resources == number)])) >= INDEPENDENT_JOBS
        ]
        alone = of_cells[node] & (confirmation.noise <= STEADY) & ~np.isin(resources, named)
        own = _charge(confirmation, confirmation.levels, node)
        charges = [
            *([own] if of_level[node].any() else []),
            *(_charge(confirmation, confirmation.resources, node, at)._replace(resource=at) for at in named),
            *(_charge(confirmation, confirmation.cells, node, at)._replace(job=at) for at in _numbers(alone)),
        ]
        held = [charge for charge in charges if charge.verdict is not NodeVerdict.ACCEPT]
        if not held and confirmation.own[node] > RESTLESS:
            held = [own._replace(verdict=NodeVerdict.UNSTABLE, interval=None)]
        if not held and screening.few and least[node] < UNSEEN:
            held = [Charge(node, NodeVerdict.UNTESTED, float(np.exp(least[node])), runs=own.runs)]
        made += sorted(held, key=lambda charge: (charge.job is not None, charge.ratio))
    return made


def _numbers(flags: Flags) -> list[int]:
    return [int(number) for number in np.flatnonzero(flags)]


def rejected(confirmation: Confirmation, tried: Flags) -> list[Flags]:
    """Return which effects (levels, resources, cells) chance does not explain: Benjamini and Hochberg (1995).

    Levels are one family, resources and jobs another, each of all nodes of the class; those that raised no flag count
    as explained.
    """
    parts = (confirmation.levels, confirmation.resources, confirmation.cells)
    chances = [np.where(tried[:, None], np.nan_to_num(part.p, nan=1.0), 1.0) for part in parts]
    families = chances[:1], chances[1:]
    return [p <= _limit(family) for family in families for p in family]


def _limit(chances: list[Logs]) -> float:
    """Return the largest chance that is a discovery; -1 where none is."""
    every = np.sort(np.concatenate(chances, axis=None))
    passed = every <= FALSE_DISCOVERIES * np.arange(1, len(every) + 1) / len(every)
    return float(every[passed].max(initial=-1.0))


def least_seen(part: Part) -> Logs:
    """Return the logarithm (N) of the largest ratio of a node that would have been called slow in each of a part's
    columns that any node has, by its interval and among healthy nodes; minus infinity where nothing is known of one."""
    chance = special.stdtrit(np.maximum(part.freedom, 1), FALSE_DISCOVERIES / max(part.p.size, 1))
    least = np.minimum(SLOW - 2 * part.half_width, chance * part.sd)
    least = least[:, ~np.isnan(least).all(axis=0)]
    seen: Logs = np.nan_to_num(least, nan=-np.inf).min(axis=1, initial=0.0)
    return seen


def _charge(confirmation: Confirmation, part: Part, node: int, column: int = 0) -> Charge:
    """Return the charge; ACCEPT where the node may be faster than the limits of both verdicts."""
    effect, half = float(part.effect[node, column]), float(part.half_width[node, column])
    upper = float(part.upper[node, column])
    verdict = NodeVerdict.ACCEPT
    if upper < DEFECT:
        verdict = NodeVerdict.DEFECT
    elif upper < SLOW:
        verdict = NodeVerdict.SLOW
    return Charge(
        node=node,
        verdict=verdict,
        ratio=float(np.exp(effect)),
        interval=(float(np.exp(effect - half)), float(np.exp(upper))),
        rounds=int(part.rounds[node, column]),
        runs=int(confirmation.runs[node]),
    )


def _suspicion(screening: Screening, node: int) -> Charge:
    """Return the outlier of a node that is the farthest below its natural range: a resource before its jobs. Of one
    without any it is an effect that could not be seen."""
    effects = screening.effects
    if not screening.outliers[node]:
        limits = [screening.levels.sd, *np.atleast_1d(screening.resources.sd)]
        seen = -ROBUST_SDS * float(np.nan_to_num(limits, nan=PRIOR).max()) if len(effects.nodes) > 1 else -np.inf
        return Charge(node, NodeVerdict.UNTESTED, float(np.exp(seen)))
    if screening.levels.low[node]:
        return Charge(node, NodeVerdict.SUSPECT, float(np.exp(effects.nodes[node])))
    if screening.resources.low[node].any():
        number, ratio = _lowest(screening.resources.low[node], effects.resources[node])
        return Charge(node, NodeVerdict.SUSPECT, ratio, resource=number)
    job, ratio = _lowest(screening.cells.low[node], effects.rest[node])
    return Charge(node, NodeVerdict.SUSPECT, ratio, job=job)


def _lowest(low: Flags, effects: Logs) -> tuple[int, float]:
    """Return the number and the ratio of the lowest of the effects that are outliers."""
    lowest = int(np.argmin(np.where(low, effects, np.inf)))
    return lowest, float(np.exp(effects[lowest]))
