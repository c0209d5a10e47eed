"""Two groups of nodes side by side: vendor A against B, an old driver against a new one."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cotenant.errors import CotenantError, did_you_mean
from cotenant.fleet.gathered import Gathered
from cotenant.report.comparison import JobComparison, SuiteComparison, comparison_grid, middle
from cotenant.report.grid import Grid
from cotenant.results.launches import LaunchRecords, difference_of, difference_words, grouped, rates_of
from cotenant.stats.comparison import compare, margin_of
from cotenant.stats.launches import across_launches
from cotenant.stats.verdict import Verdict
from cotenant.suite.jobfile import matches
from cotenant.text import many

Nodes = Sequence[list[LaunchRecords]]
"""The launches of one job on each node."""
HARDWARE_AND_SOFTWARE = ("device", "devices", "processors", "software", "kernels", "isolation")
"""The words in which two groups may differ, since this difference is the point of the comparison."""


def chosen(patterns: Sequence[str], nodes: Collection[str]) -> dict[str, list[str]]:
    """Return the nodes of `NAME=GLOBS,...`, by name. Raises CotenantError for a wrong group, or one without a node."""
    groups: dict[str, list[str]] = {}
    for text in patterns:
        name, _, globs = text.partition("=")
        if not name or not globs:
            raise CotenantError(f"--group {text} names no nodes.", "--group new='node1*,node27' does.")
        groups[name] = [node for node in nodes if any(matches(node, glob) for glob in globs.split(","))]
        if not groups[name]:
            raise CotenantError(f"--group {name}: no node is called {globs}.", did_you_mean(globs, nodes))
    if len(groups) != 2:
        raise CotenantError(f"{many(len(groups), 'group')} cannot be compared.", "Give --group twice.")
    if twice := set.intersection(*map(set, groups.values())):
        raise CotenantError(f"{min(twice)} is of both groups.", "Give each node to one of them.")
    return groups


def groups_grid(groups: Mapping[str, Sequence[str]], gathered: Gathered) -> Grid:
    """Return a row per job: B over A (Welch, 1947), each node counting with its repetitions' geometric mean.

    The margin is 2 %, or twice the noise of a node's repetitions where that is more (docs/method.md, 4).
    """
    (name_a, a), (name_b, b) = groups.items()
    lines = []
    for job, launches in grouped(gathered.launches, lambda launch: launch.job).items():
        of_nodes = grouped([launch for launch in launches if launch.rate is not None], lambda launch: launch.host)
        sides = [[of_nodes[node] for node in side if node in of_nodes] for side in (a, b)]
        if any(sides):
            lines.append(_compared(job, *sides))
    title = f"A: {name_a}, {many(len(a), 'node')}; B: {name_b}, {many(len(b), 'node')}; one rate a node"
    return replace(comparison_grid(SuiteComparison(tuple(lines), None)), title=title, notes=[])


def _compared(job: str, a: Nodes, b: Nodes) -> JobComparison:
    nodes = [*a, *b]
    means_a = [across_launches(rates_of(node)).rate for node in a]
    means_b = [across_launches(rates_of(node)).rate for node in b]
    middles = middle(means_a), middle(means_b)
    difference = difference_of([launch.work for node in nodes for launch in node], HARDWARE_AND_SOFTWARE)
    if difference is not None:
        return JobComparison(job, Verdict.INVALID, *middles, None, difference_words(*difference))
    if not a or not b:
        return JobComparison(job, Verdict.INVALID, *middles, None, "no node with a rate")
    margin = margin_of(_noise(nodes))
    result = compare(means_a, means_b, margin)
    note = f"margin {100 * margin:.1f} %"
    if result.verdict is Verdict.UNCLEAR and result.launches_needed:
        note += f"; {result.launches_needed} nodes a side would tell"
    return JobComparison(job, result.verdict, *middles, result, note)


def _noise(nodes: Nodes) -> float | None:
    """Return the standard deviation of repetitions on one node, pooled over nodes; None without repetitions."""
    variances = [float(np.var(np.log(rates_of(node)), ddof=1)) for node in nodes if len(node) > 1]
    return math.sqrt(sum(variances) / len(variances)) if variances else None
