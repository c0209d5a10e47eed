"""The jobs of a directory of records, each with its node's and its tenants' rates, and what is to be known of them.

A job is one line where its launches did equal work on one host, else it is several, and their names say why.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median

from cotenant.report.alone import Interference, alone, interference, sliced, together
from cotenant.report.mlbench import NOT_IN_PG
from cotenant.report.said import ABORTED, Loss, Said, losses, said, tenant_of
from cotenant.results.detail import Detail
from cotenant.results.launches import Launches, LaunchRate, Work, flaw, launches_of, newest_of_each
from cotenant.results.row import Row
from cotenant.results.targets import Target
from cotenant.stats.fairness import fairness
from cotenant.stats.launches import across_launches
from cotenant.stats.score import SuiteScore, suite_score

PASSED = "PASSED"
INVALID = "INVALID"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A rate in items per second. `n` counts launches, of a single launch its `observations`, else it is None.

    Of three and more launches `interval` is the 95 % t interval on their logarithms and `spread` the logarithms'
    standard deviation; of a single tenant of a single launch they are those of its observations: order statistics, and
    1.4826 MAD / median.
    """

    rate: float
    interval: tuple[float, float] | None
    spread: float | None
    launches: int
    observations: int | None = None


@dataclass(frozen=True, slots=True)
class Evenness:
    """Medians over launches of Jain's index and of worst / best; who was slowest in most of them, if anybody was."""

    jain: float
    worst_over_best: float
    slowest: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One line. `node` is None where no launch counts; `members` are the details of the launches that do.

    `isolation` is empty where records do not know it. `interference` is held against the rates of tenants alone in
    their slices, without isolation, too.
    """

    suite: str
    host: str
    name: str
    label: str
    group: str
    unit: str
    node: Estimate | None
    tenants: Mapping[str, Estimate]
    evenness: Evenness | None
    overlap: float | None
    launches: int
    verdict: str
    isolation: str
    findings: Mapping[str, int]
    work: Work | None
    rates: tuple[LaunchRate, ...]
    members: tuple[Detail, ...]
    interference: Interference | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """Everything a report says; `notes` are sentences on what was left out and why.

    `details` are those of the launches of all tenants, `solos` those of one tenant alone.
    """

    jobs: tuple[Job, ...]
    findings: tuple[Said, ...]
    losses: tuple[Loss, ...]
    notes: tuple[str, ...]
    details: tuple[Detail, ...]
    solos: tuple[Detail, ...] = ()

    @property
    def rows(self) -> list[Row]:
        return [one.row for one in self.details]


def summarise(details: Iterable[Detail]) -> Summary:
    """Return the lines of all jobs, in the order of their first record; the newest record of each tenant counts."""
    by_host: dict[tuple[str, str], list[Detail]] = defaultdict(list)
    for detail in details:
        by_host[detail.row.suite, detail.row.hostname].append(detail)
    jobs: list[Job] = []
    newest: list[Detail] = []
    solos: list[Detail] = []
    notes: list[str] = []
    for (suite, host), members in by_host.items():
        of_row = {id(one.row): one for one in members}
        rows, twice = newest_of_each(one.row for one in members)
        kept = [of_row[id(row)] for row in rows if not row.solo]
        lone = [of_row[id(row)] for row in rows if row.solo]
        found = launches_of(rows)
        notes += [*twice, *found.left_out, *_flaws(lone)]
        newest += kept
        solos += lone
        jobs += [_with_solos(job, lone) for job in _jobs(suite, host, kept, found)]
    everything = [*newest, *solos]
    return Summary(
        tuple(jobs), tuple(said(everything)), tuple(losses(everything)), tuple(notes), tuple(newest), tuple(solos)
    )


def estimate(rates: Sequence[float], only: Detail | None = None) -> Estimate:
    """Return the estimate from one rate a launch; `only` is the tenant whose single launch it was, if it was one's."""
    found = across_launches(rates)
    if found.n > 1 or only is None:
        return Estimate(found.rate, found.interval, found.spread, found.n)
    row, numbers = only.row, only.statistics
    if numbers is not None:
        return Estimate(numbers.median, numbers.interval, numbers.robust_spread, 1, numbers.n)
    spread = row.sd_s / row.mean_s if row.sd_s is not None and row.mean_s else math.nan
    return Estimate(found.rate, None, spread if math.isfinite(spread) else None, 1, row.n)


def scores(summary: Summary, targets: Mapping[str, Target], expected: Sequence[str]) -> dict[str, SuiteScore]:
    """Return each host's score over the `expected` jobs: per launch, the mean of its tenants' rates over the target.

    Targets are of one device, so that is what is compared. A job of two different works has no rate to compare.
    """
    wanted = {name: targets[name].rate for name in expected if name in targets and name not in NOT_IN_PG}
    found = {}
    for host in dict.fromkeys(job.host for job in summary.jobs):
        lines = [job for job in summary.jobs if job.host == host and job.rates]
        once = Counter(job.name for job in lines)
        rates = {job.name: per_tenant(job) for job in lines if once[job.name] == 1}
        found[host] = suite_score(rates, wanted)
    return found


def per_tenant(job: Job) -> list[float]:
    """Return per launch the mean rate of a tenant."""
    tenants = Counter(one.row.run_id for one in job.members)
    return [one.rate / tenants[one.run_id] for one in job.rates]


def _jobs(suite: str, host: str, details: Sequence[Detail], found: Launches) -> list[Job]:
    lines: list[tuple[str, Job]] = []
    for name, launches in found.of.items():
        works = list(dict.fromkeys(one.work for one in launches))
        members: dict[str, list[Detail]] = defaultdict(list)
        for one in details:
            if one.row.name == name:
                members[one.row.isolation].append(one)
        for isolation, of_isolation in members.items():
            own = [one for one in works if one.isolation == isolation]
            lost = {one.row.run_id for one in of_isolation} - {
                one.run_id for one in launches if one.work.isolation == isolation
            }
            for index, work in enumerate(own or [None]):
                rates = [one for one in launches if one.work == work]
                counted = {one.run_id for one in rates}
                # Launches without a rate have no work to be told apart by: they stand with the first.
                shown = counted | lost if index == 0 else counted
                of_line = [one for one in of_isolation if one.row.run_id in shown]
                label = _label(name, work, works, isolation if len(members) > 1 else "")
                lines.append((_first_start(of_line), _job(suite, host, name, label, of_line, rates, work)))
    return [line for _, line in sorted(lines, key=lambda pair: pair[0])]


def _flaws(solos: Iterable[Detail]) -> list[str]:
    """Say which launches of a tenant alone have no rate."""
    flaws = ((one.row, flaw([one.row])) for one in solos)
    return [f"{row.job} alone, repetition {row.run_id}: {reason}" for row, reason in flaws if reason is not None]


def _with_solos(job: Job, solos: Sequence[Detail]) -> Job:
    """Return the job held against its solo launches in slices."""
    of_job = [one for one in solos if one.row.job == job.name and sliced(one.row.isolation)]
    in_slices, _ = alone(of_job, job.members)
    return replace(job, interference=interference(together(job.members, job.rates), in_slices))


def _first_start(details: Sequence[Detail]) -> str:
    return min(one.row.start_time for one in details)


def _job(
    suite: str, host: str, name: str, label: str, details: list[Detail], rates: list[LaunchRate], work: Work | None
) -> Job:
    counted = {one.run_id for one in rates}
    members = [one for one in details if one.row.run_id in counted]
    tenants: dict[str, list[Detail]] = defaultdict(list)
    for one in sorted(members, key=lambda one: (one.row.run_id, natural(tenant_of(one.row)))):
        tenants[tenant_of(one.row)].append(one)
    overlaps = [one.rendezvous.overlap for one in members if one.rendezvous is not None]
    return Job(
        suite=suite,
        host=host,
        name=name,
        label=label,
        group=details[0].row.group,
        unit=next((one.row.unit for one in details if one.row.unit), ""),
        node=estimate([one.rate for one in rates], members[0] if len(members) == 1 else None) if rates else None,
        tenants={key: _tenant(tenants[key]) for key in sorted(tenants, key=natural)},
        evenness=_evenness(members),
        overlap=min(overlaps, default=None),
        launches=len({one.row.run_id for one in details}),
        verdict=_verdict(details, counted),
        isolation=details[0].row.isolation,
        findings=Counter(finding.severity for one in details for finding in one.findings),
        work=work,
        rates=tuple(rates),
        members=tuple(members),
    )


def _tenant(launches: Sequence[Detail]) -> Estimate:
    return estimate([one.row.rate or 0.0 for one in launches], launches[0] if len(launches) == 1 else None)


def _evenness(members: Sequence[Detail]) -> Evenness | None:
    """None where a launch has a single tenant: it shared with nobody."""
    launches: dict[int, list[Row]] = defaultdict(list)
    for one in members:
        launches[one.row.run_id].append(one.row)
    shared = [rows for rows in launches.values() if len(rows) > 1]
    if not shared:
        return None
    found = [fairness([row.rate or 0.0 for row in rows]) for rows in shared]
    slowest = Counter(tenant_of(rows[one.slowest]) for rows, one in zip(shared, found, strict=True))
    (who, times), *_ = slowest.most_common(1)
    return Evenness(
        median(one.jain for one in found),
        median(one.worst_over_best for one in found),
        who if 2 * times > len(shared) else None,
    )


def _verdict(details: Sequence[Detail], counted: set[int]) -> str:
    """PASSED, how many launches of how many did, or what happened instead where none did."""
    total = {one.row.run_id for one in details}
    if counted == total:
        return PASSED
    if counted:
        return f"{len(counted)}/{len(total)} {PASSED}"
    outcomes = [one.row.outcome for one in details if not one.row.completed]
    if outcomes:
        # An aborted tenant ended by another's fault, which says more.
        return min(outcomes, key=lambda outcome: outcome == ABORTED)
    return INVALID if any(one.row.invalid for one in details) else "incomplete"


def _label(name: str, work: Work | None, works: Sequence[Work], isolation: str) -> str:
    """Return the job's name, with what tells it from others of the name; `isolation` where that alone is known to."""
    told = _difference(work, works) if work is not None and len(works) > 1 else isolation and f"isolation {isolation}"
    return f"{name} ({told})" if told else name


def _difference(work: Work, works: Sequence[Work]) -> str:
    """Name the values of a work that others do not share."""
    differing = [one.name for one in fields(Work) if len({getattr(other, one.name) for other in works}) > 1]
    told = [f"{name.replace('_', ' ')} {str(getattr(work, name))[:12] or 'unknown'}" for name in differing]
    return ", ".join(told)


def natural(label: str) -> tuple[int, str]:
    """Return what tenants are sorted by: numbers by their value, before all others."""
    return (int(label), "") if label.isdecimal() else (1 << 30, label)
