"""From confirmed outliers to a verdict on each node: what is held against it, and what it takes to hold it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cotenant.stats.confirmation import DEFECT, SLOW, Confirmation, Part
from cotenant.stats.fleet import Flags, Logs, Screening

FALSE_DISCOVERIES = 0.01
P_JOB = 0.01
"""The chance below which one job of a slow resource speaks for it."""
INDEPENDENT_JOBS = 2
STEADY = 0.01
"""A job whose repeats spread by more condemns nobody alone."""
RESTLESS = 2.0
"""A node whose repeats spread by so many times those of healthy nodes is unstable."""


class NodeVerdict(enum.StrEnum):
    """What becomes of a node; SUSPECT is an outlier that has not run again beside healthy nodes."""

    ACCEPT = "ACCEPT"
    SUSPECT = "SUSPECT"
    SLOW = "SLOW"
    DEFECT = "DEFECT"
    UNSTABLE = "UNSTABLE"
    ABSENT = "ABSENT"


@dataclass(frozen=True, slots=True)
class Charge:
    """One thing that is held against a node, by numbers of its class: a `resource`, a `job`, or neither: its level.

    `ratio` is its rate over that of healthy nodes, with the 95 % `interval`; `rounds` is how many repeats of `runs`
    showed it again. A SUSPECT has no interval, and its ratio is that of the screening.
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
    """Return what is held against the nodes of one class, the worst of a node first.

    `resources` has each job's (J), -1 for none; `works` (J) is equal for jobs that are not independent, as one model
    in two precisions. A suspect that has not run again is charged with its outliers, as SUSPECT.
    """
    suspects = screening.suspects
    if confirmation is None:
        return [_suspicion(screening, node) for node in _numbers(suspects)]
    untried = suspects & (confirmation.runs < 2)
    made = [_suspicion(screening, node) for node in _numbers(untried)]
    tried = suspects & ~untried
    of_level, of_resources, of_cells = rejected(confirmation, tried)
    for node in _numbers(tried):
        agreeing = confirmation.cells.p[node] < P_JOB
        named = [
            number
            for number in _numbers(of_resources[node])
            if len(np.unique(works[agreeing & (resources == number)])) >= INDEPENDENT_JOBS
        ]
        alone = of_cells[node] & (confirmation.noise <= STEADY) & ~np.isin(resources, named)
        charges = [
            *(_charge(confirmation, confirmation.levels, node, 0) for _ in _numbers(of_level[node])),
            *(_charge(confirmation, confirmation.resources, node, number, resource=number) for number in named),
            *(_charge(confirmation, confirmation.cells, node, job, job=job) for job in _numbers(alone)),
        ]
        held = [charge for charge in charges if charge is not None]
        if not held and confirmation.own[node] > RESTLESS:
            held = [_restless(confirmation, node)]
        made += sorted(held, key=lambda charge: (charge.job is not None, charge.ratio))
    return made


def _numbers(flags: Flags) -> list[int]:
    return [int(number) for number in np.flatnonzero(flags)]


def rejected(confirmation: Confirmation, tried: Flags) -> list[Flags]:
    """Return which effects (levels, resources, cells) chance does not explain: Benjamini and Hochberg (1995).

    The family is all nodes of the class by all their effects; those that raised no flag count as explained.
    """
    parts = (confirmation.levels, confirmation.resources, confirmation.cells)
    chances = [np.where(tried[:, None], np.nan_to_num(part.p, nan=1.0), 1.0) for part in parts]
    every = np.sort(np.concatenate([p.ravel() for p in chances]))
    passed = every <= FALSE_DISCOVERIES * np.arange(1, len(every) + 1) / max(len(every), 1)
    limit = every[passed].max(initial=-1.0)
    return [p <= limit for p in chances]


def _charge(
    confirmation: Confirmation,
    part: Part,
    node: int,
    column: int,
    resource: int | None = None,
    job: int | None = None,
) -> Charge | None:
    """Return the charge, None where the node may be faster than the limits of both verdicts."""
    effect, half, upper = (float(values[node, column]) for values in (part.effect, part.half_width, part.upper))
    if not upper < SLOW:
        return None
    return Charge(
        node=node,
        verdict=NodeVerdict.DEFECT if upper < DEFECT else NodeVerdict.SLOW,
        ratio=float(np.exp(effect)),
        interval=(float(np.exp(effect - half)), float(np.exp(upper))),
        rounds=int(part.rounds[node, column]),
        runs=int(confirmation.runs[node]),
        resource=resource,
        job=job,
    )


def _restless(confirmation: Confirmation, node: int) -> Charge:
    part = confirmation.levels
    return Charge(
        node=node,
        verdict=NodeVerdict.UNSTABLE,
        ratio=float(np.exp(part.effect[node, 0])),
        rounds=int(part.rounds[node, 0]),
        runs=int(confirmation.runs[node]),
    )


def _suspicion(screening: Screening, node: int) -> Charge:
    """Return the outlier of a node that is the farthest below what is natural: a resource before its jobs."""
    effects = screening.effects
    if screening.levels.low[node]:
        return Charge(node, NodeVerdict.SUSPECT, float(np.exp(effects.nodes[node])))
    number, ratio = _lowest(screening.resources.low[node], effects.resources[node])
    if number is not None:
        return Charge(node, NodeVerdict.SUSPECT, ratio, resource=number)
    job, ratio = _lowest(screening.cells.low[node], effects.rest[node])
    return Charge(node, NodeVerdict.SUSPECT, ratio, job=job)


def _lowest(low: Flags, effects: Logs) -> tuple[int | None, float]:
    """Return the number and the ratio of the lowest of the effects that are outliers; None where none is."""
    if not low.any():
        return None, 1.0
    lowest = int(np.argmin(np.where(low, effects, np.inf)))
    return lowest, float(np.exp(effects[lowest]))


def worst(charges_of_node: list[Charge]) -> NodeVerdict:
    """Return the verdict on a node from what is held against it."""
    order = (NodeVerdict.DEFECT, NodeVerdict.SLOW, NodeVerdict.UNSTABLE, NodeVerdict.SUSPECT)
    verdicts = {charge.verdict for charge in charges_of_node}
    return next((verdict for verdict in order if verdict in verdicts), NodeVerdict.ACCEPT)
