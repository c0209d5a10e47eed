"""A verdict on each node of a fleet, with the records that show it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from cotenant.fleet.gathered import FleetNode, Gathered, NodeClass, digest_groups
from cotenant.fleet.manifest import NodeState
from cotenant.results.launches import LaunchRecords, grouped
from cotenant.results.record import INTERRUPTED
from cotenant.results.table import AT
from cotenant.stats.acceptance import Charge, NodeVerdict, charges, least_seen
from cotenant.stats.confirmation import Confirmation, confirm
from cotenant.stats.fleet import AGREE, PRIOR, Bins, Screening, bins_of, minority, screen
from cotenant.text import listed, many

ORDER = (
    NodeVerdict.ABSENT,
    NodeVerdict.DEFECT,
    NodeVerdict.SLOW,
    NodeVerdict.UNSTABLE,
    NodeVerdict.SUSPECT,
    NodeVerdict.UNTESTED,
    NodeVerdict.BIN,
    NodeVerdict.ACCEPT,
)
"""From the worst."""
ALL_JOBS = "all jobs"
SOUND = (NodeVerdict.ACCEPT, NodeVerdict.BIN)
AGAIN = (NodeVerdict.SUSPECT, NodeVerdict.UNTESTED)


SENTENCES = {
    NodeVerdict.UNSTABLE: "its repeats differ more than those of others",
    NodeVerdict.UNTESTED: "of few nodes: less than {} % slower would not have been seen",
}


@dataclass(frozen=True, slots=True)
class Grounds:
    """One thing that is held against a node: `what` it is of, the rate over that of healthy nodes with its 95 %
    interval, in how many of how many repeats it showed again, a sentence, and the `record` that shows it."""

    verdict: NodeVerdict
    what: str
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    rounds: int = 0
    runs: int = 0
    sentence: str = ""
    record: str = ""


@dataclass(frozen=True, slots=True)
class NodeJudgement:
    """One node, with its worst reason first; none of a node that is accepted."""

    node: FleetNode
    reasons: Sequence[Grounds]
    launches: int

    @property
    def verdict(self) -> NodeVerdict:
        """The worst of its reasons."""
        return self.reasons[0].verdict if self.reasons else NodeVerdict.ACCEPT


@dataclass(frozen=True, slots=True, eq=False)
class JudgedClass:
    """One class with its outliers, as the matrix of nodes by jobs shows it."""

    members: NodeClass
    bins: Bins
    screening: Screening
    confirmation: Confirmation | None

    @property
    def ratios(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """Each rate of the screening over its job's median in the class (N, J)."""
        with np.errstate(invalid="ignore"):
            ratios: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = np.exp(
                self.members.screening - np.nanmedian(self.members.screening, axis=0)
            )
        return ratios


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A fleet: its nodes, the worst first; its classes; and `compared`, the jobs whose losses could be compared."""

    gathered: Gathered
    nodes: Sequence[NodeJudgement]
    classes: Sequence[JudgedClass]
    compared: Sequence[str]

    @property
    def accepted(self) -> bool:
        """Whether nothing is held against any node."""
        return all(judgement.verdict in SOUND for judgement in self.nodes)

    @property
    def suspects(self) -> list[str]:
        """The names of the nodes that have to run again."""
        return [each.node.name for each in self.nodes if any(r.verdict in AGAIN for r in each.reasons)]


def judge(gathered: Gathered, expected: Mapping[str, NodeState]) -> Judged:
    """Return a verdict on every node that ran or was expected to."""
    reasons: dict[str, list[Grounds]] = defaultdict(list)
    classes = []
    for members in gathered.classes:
        bins = bins_of(members.screening, members.resources)
        screening = screen(bins.taken_off(members.screening, members.resources), members.resources)
        rounds = bins.taken_off(members.rounds, members.resources)
        confirmation = confirm(screening, rounds, members.resources)
        classes.append(JudgedClass(members, bins, screening, confirmation))
        for node, reason in _of_bins(classes[-1], gathered):
            reasons[node].append(reason)
        for charge in charges(screening, confirmation, members.resources, members.works):
            reasons[members.nodes[charge.node].name].append(_of_charge(charge, classes[-1], gathered))
    compared = set[str]()
    for node, reason in (*_corrupt(gathered, compared), *_failures(gathered), *_absences(gathered, expected)):
        reasons[node].append(reason)
    counts = Counter(launch.host for launch in gathered.launches)
    nodes = {**{name: FleetNode(name, state.host, "") for name, state in expected.items()}, **gathered.nodes}
    judged = [
        NodeJudgement(node, sorted(reasons[name], key=lambda reason: ORDER.index(reason.verdict)), counts[name])
        for name, node in nodes.items()
    ]
    judged.sort(key=lambda judgement: ORDER.index(judgement.verdict))
    return Judged(gathered, judged, classes, sorted(compared))


def _of_bins(of: JudgedClass, gathered: Gathered) -> Iterator[tuple[str, Grounds]]:
    """Yield the nodes that are of a slower bin."""
    columns = [(ALL_JOBS, of.bins.levels), *zip(gathered.resources, of.bins.resources.T, strict=False)]
    for what, below in columns:
        for node in np.flatnonzero(below < 0):
            equal = int(np.sum(below == below[node]))
            sentence = f"one of {many(equal, 'node')} alike, with a gap to faster ones of equal hardware"
            yield (
                of.members.nodes[int(node)].name,
                Grounds(NodeVerdict.BIN, what, float(np.exp(below[node])), sentence=sentence),
            )


def _of_charge(charge: Charge, of: JudgedClass, gathered: Gathered) -> Grounds:
    members, effects = of.members, of.screening.effects
    jobs = np.arange(len(members.jobs))
    what = ALL_JOBS
    if charge.resource is not None:
        what = gathered.resources[charge.resource]
        jobs = np.flatnonzero(members.resources == charge.resource)
    elif charge.job is not None:
        what, jobs = members.jobs[charge.job], np.array([charge.job])
    ran = [job for job in jobs if members.at[0, charge.node, job] >= 0]
    worst = min(ran, key=lambda job: effects.rest[charge.node, job], default=None)
    sentence = SENTENCES.get(charge.verdict, "").format(f"{100 * (1 - charge.ratio):.0f}")
    return Grounds(
        verdict=charge.verdict,
        what=what,
        ratio=None if charge.verdict is NodeVerdict.UNTESTED else charge.ratio,
        interval=charge.interval,
        rounds=charge.rounds,
        runs=charge.runs,
        sentence=sentence,
        record="" if worst is None else gathered.path_of(int(members.at[0, charge.node, worst])),
    )


def _corrupt(gathered: Gathered, compared: set[str]) -> Iterator[tuple[str, Grounds]]:
    """Yield the nodes that computed something else than nearly all others, and add the jobs that were `compared`."""
    seen: dict[str, list[tuple[str, bool, int]]] = defaultdict(list)
    for (job, *_), of_nodes in digest_groups(gathered.frame).items():
        other = minority(np.array(list(of_nodes.values())))
        agree = len(of_nodes) - int(other.sum())
        # Work that does not repeat is compared by nobody.
        if agree < AGREE or len({value for value, odd in zip(of_nodes.values(), other, strict=True) if not odd}) > 1:
            continue
        compared.add(job)
        for name, differs in zip(of_nodes, other, strict=True):
            seen[name].append((job, bool(differs), agree))
    for name, launches in seen.items():
        jobs = list(dict.fromkeys(job for job, differs, _ in launches if differs))
        if jobs:
            agree = max(agree for _, differs, agree in launches if differs)
            of_node = gathered.frame.with_row_index(AT).filter(
                (pl.col("hostname") == name) & (pl.col("name") == jobs[0])
            )
            yield (
                name,
                Grounds(
                    NodeVerdict.DEFECT,
                    f"losses of {listed(jobs, 3)}",
                    rounds=sum(differs for _, differs, _ in launches),
                    runs=sum(job in jobs for job, _, _ in launches),
                    sentence=f"its losses differ from those of {many(agree, 'node')}, which agree",
                    record=gathered.path_of(of_node[AT][0]),
                ),
            )


def _failures(gathered: Gathered) -> Iterator[tuple[str, Grounds]]:
    """Yield the launches that failed on a node where most others completed the same.

    One that failed once is repeated before it is held against the node, and forgotten where it completes then.
    """
    passed = {(launch.host, launch.job) for launch in gathered.launches if not _has_failed(launch)}
    failures = Counter((launch.host, launch.job) for launch in gathered.launches if _has_failed(launch))
    for launches in grouped(gathered.launches, lambda launch: (launch.job, launch.run_id)).values():
        failed = [launch for launch in launches if _has_failed(launch)]
        if len(failed) * 2 > len(launches):
            continue
        for launch in failed:
            times, repeated = failures[launch.host, launch.job], (launch.host, launch.job) in passed
            if times == 1 and repeated:
                continue
            verdict = NodeVerdict.UNSTABLE if times > 1 else NodeVerdict.SUSPECT
            sentence = f"{launch.job}, repetition {launch.run_id}: {launch.flaw or launch.failure}"
            record = gathered.path_of(launch.at[0])
            yield launch.host, Grounds(verdict, launch.job, sentence=sentence, record=record)


def _failed_on_most(gathered: Gathered) -> Iterator[str]:
    """Yield the jobs that completed on less than half of the nodes that launched them, each with the first reason."""
    for job, launches in grouped(gathered.launches, lambda launch: launch.job).items():
        passed = {launch.host for launch in launches if not _has_failed(launch)}
        failed = [launch for launch in launches if launch.host not in passed]
        if 2 * len({launch.host for launch in failed}) > len({launch.host for launch in launches}):
            yield f"{job} ({(failed[0].flaw or '').rstrip('.')})"


def _has_failed(launch: LaunchRecords) -> bool:
    return launch.rate is None and launch.failure != INTERRUPTED


def _absences(gathered: Gathered, expected: Mapping[str, NodeState]) -> Iterator[tuple[str, Grounds]]:
    """Yield the nodes that did not end, or have no rate that is compared, or lack a job that most others have."""
    counts = Counter(launch.host for launch in gathered.launches if launch.rate is not None)
    compared = {
        node.name for of in gathered.classes for node, rows in zip(of.nodes, of.at[0], strict=True) if rows.max() >= 0
    }
    for name in dict.fromkeys([*expected, *gathered.nodes]):
        state = expected.get(name, NodeState(name, "finished"))
        if state.state != "finished" or not counts[name]:
            none = "none of its launches has a rate" if name in gathered.nodes else "no record of it came"
            records = f"{many(counts[name], 'launch', 'es')} of it are kept" if counts[name] else none
            why = "" if state.state == "finished" else f"{state.state}: {state.message or 'it did not end'}; "
            yield name, Grounds(NodeVerdict.ABSENT, "", sentence=f"{why}{records}")
        elif name not in compared:
            sentence = "none of its launches is of the repetition and the work in which most nodes are compared"
            yield name, Grounds(NodeVerdict.ABSENT, "", sentence=sentence)
    by_hardware = grouped(gathered.launches, lambda launch: gathered.nodes[launch.host].hardware)
    for of in gathered.classes:
        screened = [launch for launch in by_hardware[of.nodes[0].hardware] if launch.run_id == of.screened]
        for name, missing in _missing(screened):
            if name not in expected or expected[name].state == "finished":
                yield name, Grounds(NodeVerdict.ABSENT, "", sentence=f"no record of {listed(missing)}")


def _missing(launches: Sequence[LaunchRecords]) -> Iterator[tuple[str, list[str]]]:
    """Yield each node that lacks jobs which more than half of the nodes have."""
    of_nodes = grouped(launches, lambda launch: launch.host)
    jobs = {name: {launch.job for launch in of_node} for name, of_node in of_nodes.items()}
    usual = Counter(job for of_node in jobs.values() for job in of_node)
    for name, own in jobs.items():
        if missing := sorted(job for job, nodes_of in usual.items() if 2 * nodes_of > len(jobs) and job not in own):
            yield name, missing


def coverage(judged: Judged) -> list[str]:
    """Return sentences on the nodes and jobs that were tested, and those that were not."""
    gathered = judged.gathered
    tested = {gathered.resources[r] for of in judged.classes for r in of.members.resources if r >= 0}
    untested = [name for name in gathered.resources if name not in tested]
    jobs = list(dict.fromkeys(job for of in judged.classes for job in of.members.jobs))
    lines = [f"Tested: {listed(jobs, 20)}; resources {listed(sorted(tested), 20) or 'none'}."]
    missing = ["the fabric between nodes", "hours of heat"]
    missing += [f"resources {listed(untested, 20)}, of which no job ran"] if untested else []
    if not judged.compared:
        missing.append("silent corruption (no job has equal losses on three nodes)")
    lines.append(f"Not tested: {listed(missing, 20)}.")
    if judged.compared:
        lines.append(f"Losses compared: {listed(judged.compared, 20)}.")
    if failed := list(_failed_on_most(gathered)):
        lines.append(f"Failed on most nodes, so that no node is to blame: {listed(failed, 20)}.")
    return [*lines, *(_few(of) for of in judged.classes if of.screening.few)]


def _few(of: JudgedClass) -> str:
    """Return sentences on effects that could not be seen of few nodes."""
    nodes = f"{many(len(of.members.nodes), 'node')} of {of.members.nodes[0].hardware}"
    if of.confirmation is None:
        return f"{nodes}: too few to tell what is natural by one run. All have to run again."
    parts = (of.confirmation.resources, of.confirmation.levels)
    of_resource, of_level = (100 * float(1 - np.exp(least_seen(part).min())) for part in parts)
    return (
        f"{nodes}: few, so that {100 * PRIOR:.0f} % between them are taken for natural. Less than {of_resource:.0f} % "
        f"in a resource, or {of_level:.0f} % in all jobs, would not have been seen."
    )
