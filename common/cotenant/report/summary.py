"""The jobs of a directory of records, each with its node's and its tenants' rates, and notes on them.

A job is one line if its launches did equal work on one host, else several, named by the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import numpy as np

from cotenant.frames import pl
from cotenant.report.alone import (
    KEPT,
    NO_SLICES,
    RATE_ENDS,
    RecordRow,
    Side,
    alone,
    alone_in_blocks,
    rows_of,
    sliced,
    together,
)
from cotenant.report.ceilings import FLOP, Compute, ceilings, compute
from cotenant.report.mlbench import NOT_IN_PG
from cotenant.report.problems import Loss, ReportedFinding, losses, reported_findings
from cotenant.report.trust import Doubt, doubts
from cotenant.results.columns import BESIDE_PRESSURE, IN_DUET
from cotenant.results.identity import natural
from cotenant.results.launches import (
    LaunchRecords,
    Work,
    distinguishing_values,
    failure_of,
    grouped,
    launches_in,
    why_left_out,
)
from cotenant.results.newest import newest_in
from cotenant.results.record import CLEAN, INVALID, SUSPECT
from cotenant.results.table import AT, Rows, Table
from cotenant.results.targets import Target
from cotenant.stats.evenness import differences
from cotenant.stats.interference import SuiteScore, interval_of_quotient, rate_ratio, suite_score
from cotenant.stats.kept import Kept, joint
from cotenant.stats.launches import across_launches
from cotenant.stats.tenants import jain
from cotenant.text import many


@dataclass(frozen=True, slots=True)
class Estimate:
    """A rate in items per second, over `launches`; `observations` is None except for one launch of one tenant.

    For three or more launches, `interval` is the 95 % t interval on their logarithms and `spread` the logarithms'
    standard deviation. For a single tenant of a single launch both come from its observations: order statistics, and
    1.4826 MAD / median; if its record lacks these, there is no interval, and `spread` is sd / mean.
    """

    rate: float
    interval: tuple[float, float] | None
    spread: float | None
    launches: int
    observations: int | None = None


@dataclass(frozen=True, slots=True)
class Evenness:
    """Jain's index, the median over launches, and the slowest tenant's rate over the fastest one's.

    With two or more launches, `worst_over_best` compares the tenants' means over launches, shrunk towards each other
    for noise (`stats/evenness.py`); `slowest` is the tenant that is noticeably slower beyond noise, if any, and `p` the
    chance of such a range among equals. With one launch it is the measured ratio, with unknown noise.
    """

    jain: float
    worst_over_best: float
    slowest: str | None = None
    p: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class JobSummary:
    """One line of a report. `rates` are the launches that count, `members` their records; without any `node` is None.

    `isolation` is empty if records do not have it. `alone` has the rates of tenants alone in their slices, None if no
    tenant was to run alone; the cost of neighbours is measured against these, also for a job without slices.
    """

    suite: str
    host: str
    name: str
    difference: str
    """The values in which its work differs from other work of its name; empty if there is none."""
    group: str
    unit: str
    node: Estimate | None
    tenants: Mapping[str, Estimate]
    evenness: Evenness | None
    """None for a single tenant, and if the work of a step depends on the training so far."""
    overlap: float | None
    launches: int
    failure: str | None
    isolation: str
    cell: str
    """The job's name outside a `mix`, in which `name` differs."""
    mix: str
    findings: Mapping[str, int]
    gpus: tuple[str, ...]
    work: Work | None
    rates: tuple[LaunchRecords, ...]
    members: Rows
    together: Side
    sharers: int
    """The number of tenants on the same processors; 1 if each has its own."""
    error: str = ""
    """The most frequent rule among the errors of an INVALID job."""
    alone: Side | None = None
    unsliced_alone: Side | None = None
    compute: Compute | None = None
    """None if no operations were counted, and for a `pressed` job."""
    doubt: Doubt | None = None
    """The worst warning; None for a clean job."""
    kept: Mapping[str | None, Kept] = field(default_factory=dict)
    """The known shares of their rates alone that tenants, and under None the node, keep beside neighbours."""

    @property
    def label(self) -> str:
        """Its name, and the difference in parentheses."""
        return f"{self.name} ({self.difference})" if self.difference else self.name

    @property
    def verdict(self) -> str:
        """`clean` or `suspect`, after `2/3` if only 2 of 3 launches count; their outcome if none does."""
        if not self.rates:
            return self.failure or "incomplete"
        trust = CLEAN if self.doubt is None else SUSPECT
        return trust if len(self.rates) == self.launches else f"{len(self.rates)}/{self.launches} {trust}"

    @property
    def shares(self) -> list[Kept]:
        """The known shares of its tenants."""
        return [self.kept[tenant] for tenant in self.tenants if tenant in self.kept]


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """The contents of a report; `notes` are sentences on the launches that were left out, and why.

    `records` are of launches of all tenants, `solos` of one tenant alone. Two kinds are in no other field: `pressed`,
    jobs beside neighbours of known pressure, and these neighbours; and records `in_duets`, of programs that took turns.
    """

    jobs: tuple[JobSummary, ...]
    findings: tuple[ReportedFinding, ...]
    losses: tuple[Loss, ...]
    notes: tuple[str, ...]
    records: Rows
    solos: Rows
    pressed: tuple[JobSummary, ...]
    in_duets: Rows

    @property
    def hosts(self) -> dict[str, Summary]:
        """A summary of each host by its name: its own jobs, but the records, findings and losses of all hosts."""
        by_host = grouped(self.jobs, lambda job: job.host)
        if len(by_host) == 1:
            return dict.fromkeys(by_host, self)
        return {host: replace(self, jobs=tuple(jobs)) for host, jobs in by_host.items()}


def summarise(records: Rows) -> Summary:
    """Return the summary of records, with jobs by suite and host, then by start; a tenant's newest record counts."""
    newest, notes = newest_in(records.numbered)
    table = records.table

    def rows(chosen: pl.Expr) -> Rows:
        return Rows(table, newest.select(pl.col(AT).filter(chosen))[AT].to_list())

    in_duets, beside_levels, mask = rows(IN_DUET), {*rows(BESIDE_PRESSURE).at}, ~BESIDE_PRESSURE & ~IN_DUET
    if beside_levels:
        pressed_records = many(len(beside_levels), "record")
        notes.append(f"{pressed_records} beside neighbours of known pressure: --table pressure has their curves.")
    jobs: list[JobSummary] = []
    pressed: list[JobSummary] = []
    counted = newest.filter(~IN_DUET)
    for launches in grouped(launches_in(counted), lambda launch: (launch.suite, launch.host)).values():
        shared, lone = ([launch for launch in launches if launch.solo == solo] for solo in (False, True))
        notes += [why_left_out(launch) for launch in (*shared, *lone) if launch.flaw is not None]
        of_solos = rows_of(Rows(table, [at for launch in lone for at in launch.at]))
        for made, are_pressed in ((jobs, False), (pressed, True)):
            own_launches = [launch for launch in shared if beside_levels.issuperset(launch.at) == are_pressed]
            made += _with_solos(_jobs(table, own_launches), of_solos, are_pressed)
    jobs, pressed = _with_ceilings(_with_doubts(jobs)), _with_doubts(pressed)
    notes += [f"{job.label}: {job.compute.above}" for job in jobs if job.compute is not None and job.compute.above]
    of_all, solos = rows(mask & ~pl.col("solo")), rows(mask & pl.col("solo"))
    whole = Rows(table, [*of_all.at, *solos.at])
    found, lost = tuple(reported_findings(whole)), tuple(losses(whole))
    return Summary(tuple(jobs), found, lost, tuple(notes), of_all, solos, tuple(pressed), in_duets)


def estimate(rates: Sequence[float], only: Mapping[str, Any] | None = None) -> Estimate:
    """Return the estimate from one rate a launch; `only` is the record of a single tenant's rate in a single launch."""
    across = across_launches(rates)
    if across.n > 1 or only is None:
        return Estimate(across.rate, across.interval, across.spread, across.n)
    low, high, spread, sd_s, mean_s = (only[name] for name in (*RATE_ENDS, "robust_spread", "sd_s", "mean_s"))
    if spread is not None:
        return Estimate(rates[0], None if None in (low, high) else (low, high), spread, 1, only["n"])
    return Estimate(rates[0], None, None if None in (sd_s, mean_s) else sd_s / mean_s, 1, only["n"])


def scores(
    summary: Summary,
    targets: Mapping[str, Target],
    expected: Sequence[str],
    weights: Mapping[str, float] | None = None,
) -> dict[str, SuiteScore]:
    """Return each host's score over the `expected` jobs: per launch, its tenants' mean rate over the target.

    A target is the rate of one device, so one tenant's rate is compared. A job with two different works has no rate to
    compare. `weights` are by job, 1 by default.
    """
    wanted = {name: targets[name].rate for name in expected if name in targets and name not in NOT_IN_PG}
    of_hosts = {}
    for host, jobs in grouped(summary.jobs, lambda job: job.host).items():
        by_name = grouped((job for job in jobs if job.rates), lambda job: job.name)
        rates = {name: per_tenant(*lines) for name, lines in by_name.items() if len(lines) == 1}
        of_hosts[host] = suite_score(rates, wanted, weights)
    return of_hosts


def per_tenant(job: JobSummary) -> dict[int, float]:
    """Return each launch's mean rate over its tenants, by uid."""
    return {launch.run_id: launch.rate / len(launch.rates) for launch in job.rates if launch.rate is not None}


def _jobs(table: Table, launches: Sequence[LaunchRecords]) -> list[JobSummary]:
    lines = [line for of_job in grouped(launches, lambda launch: launch.job).values() for line in _lines(of_job)]
    lines.sort(key=lambda line: min(launch.start_time for launch in line[-1]))
    return [_job(table, *line) for line in lines]


def _lines(launches: Sequence[LaunchRecords]) -> Iterator[tuple[str, Work | None, Sequence[LaunchRecords]]]:
    """Yield a job's launches by their work, with the words that distinguish it from other work, and the work itself."""
    works = list(dict.fromkeys(launch.work for launch in launches if launch.rate is not None))
    isolations = {launch.isolation for launch in launches}
    # Launches without a rate have no known work: they join the first line of their isolation.
    first = {dict(work)["isolation"]: work for work in reversed(works)}
    of_works = grouped(
        launches, lambda launch: (launch.isolation, first.get(launch.isolation) if launch.rate is None else launch.work)
    )
    for (isolation, work), of_line in of_works.items():
        difference = f"isolation {isolation}" if len(isolations) > 1 and isolation else ""
        if work is not None and len(works) > 1:
            difference = distinguishing_values(work, works)
        yield difference, work, of_line


def _with_solos(jobs: Iterable[JobSummary], solos: Iterable[RecordRow], are_pressed: bool) -> Iterator[JobSummary]:
    """Yield the jobs with their tenants' rates alone, and the shares that tenants keep, also in a mix.

    Rates alone come from blocks, or from solo launches if more repetitions have these: the two are never mixed. Shares
    are of the rate alone in a slice; for pressed jobs without slices, of the rate alone without slices.
    """
    by_job = grouped(solos, lambda row: str(row["job"]))
    for job in jobs:
        in_slices, sides = sliced(job.isolation), dict[bool, Side]()
        if (of_job := by_job.get(job.cell)) is not None:
            members = rows_of(job.members)
            sides[True] = alone([row for row in of_job if sliced(row["isolation"])], members)
            sides[False] = alone([row for row in of_job if row["isolation"] == NO_SLICES], members)
        in_blocks = alone_in_blocks(job.members)
        if in_blocks is not None and len(in_blocks.node) >= len(sides.get(in_slices, Side()).node):
            sides = {in_slices: in_blocks}
        under = sides.get(in_slices or not are_pressed)
        kept = {} if under is None else _kept(job, under)
        yield replace(job, alone=sides.get(True), unsliced_alone=sides.get(False), kept=kept)


def _kept(job: JobSummary, alone: Side) -> dict[str | None, Kept]:
    """Return the shares that tenants and the node keep, over launches or a single launch's blocks or observations."""
    kept: dict[str | None, Kept] = {}
    for tenant, rates in job.together.tenants.items():
        if (share := _within(job, alone, tenant) or rate_ratio(rates, alone.of(tenant))) is not None:
            kept[tenant] = share
    node = rate_ratio(job.together.node, alone.node)
    if node is None:
        return kept
    if len(kept) == len(job.together.tenants) and (whole := joint([*kept.values()])).within:
        # The node's interval follows from its tenants' errors.
        node = whole.times(node.value / whole.value)
    return {None: node} | kept


def _within(job: JobSummary, alone: Side, tenant: str) -> Kept | None:
    """Return a tenant's kept share from the rounds, or observations, of one launch together and one alone.

    None if there are several launches, or too few rounds or observations for an interval.
    """
    estimate, rows = job.tenants[tenant], [*alone.rows.get(tenant, {}).values()]
    if estimate.observations is None or estimate.interval is None or len(rows) != 1:
        return None
    (row,) = rows
    if alone.baseline == "blocks":
        value, low, high, rounds = (row[name] for name in KEPT)
        return None if None in (low, high, rounds) else Kept(value, (low, high), rounds, "rounds")
    rate, low, high = (row[name] for name in ("rate_items_s", *RATE_ENDS))
    if low is None or high is None:
        return None
    ends = interval_of_quotient(estimate.rate, estimate.interval, rate, (low, high))
    return Kept(estimate.rate / rate, ends, estimate.observations, "observations")


def _with_doubts(jobs: Sequence[JobSummary]) -> list[JobSummary]:
    worst = doubts([job.members for job in jobs])
    return [replace(job, doubt=doubt) for job, doubt in zip(jobs, worst, strict=True)]


def _with_ceilings(jobs: Sequence[JobSummary]) -> list[JobSummary]:
    """Return the jobs, compared with the ceilings among them; ceilings are not compared."""
    most = ceilings(job.members for job in jobs if job.unit == FLOP)
    return [replace(job, compute=compute(job.members, most.clear() if job.unit == FLOP else most)) for job in jobs]


def _job(table: Table, difference: str, work: Work | None, launches: Sequence[LaunchRecords]) -> JobSummary:
    counted = sorted((launch for launch in launches if launch.rate is not None), key=lambda launch: launch.run_id)
    side = together(counted)
    members = [at for launch in counted for _, at in sorted(zip(map(natural, launch.tenants), launch.at, strict=True))]
    # A single launch's rows have the intervals over its observations.
    single = zip(counted[0].tenants, counted[0].at, strict=True) if len(counted) == 1 else ()
    only = {tenant: table.frame.row(at, named=True) for tenant, at in single}
    lone = next(iter(only.values())) if len(only) == 1 else None
    ordered = sorted(side.tenants, key=natural)
    tenants = {tenant: estimate([*side.tenants[tenant].values()], only.get(tenant)) for tenant in ordered}
    first, failure = launches[0], failure_of(launches)
    return JobSummary(
        suite=first.suite,
        host=first.host,
        name=first.job,
        difference=difference,
        group=first.group,
        unit=next((launch.unit for launch in launches if launch.unit), ""),
        node=estimate([*side.node.values()], lone) if counted else None,
        tenants=tenants,
        evenness=None if table.frame["work_learned"].gather(members).any() else _evenness(counted),
        overlap=min((launch.overlap for launch in counted if launch.overlap is not None), default=None),
        launches=len(launches),
        failure=failure,
        isolation=first.isolation,
        cell=first.cell,
        mix=first.mix,
        findings=_findings(launches),
        gpus=tuple(gpu for gpu in table.frame["gpu"].gather(members).unique(maintain_order=True) if gpu),
        work=work,
        rates=tuple(counted),
        members=Rows(table, members),
        together=side,
        sharers=max(table.frame["sharers"].gather(members), default=1),
        error=_most_errors(Rows(table, [at for launch in launches for at in launch.at])) if failure == INVALID else "",
    )


def _most_errors(records: Rows) -> str:
    rules = Counter(records.findings().filter(pl.col("severity") == "error")["rule"])
    return rules.most_common(1)[0][0] if rules else ""


def _findings(launches: Sequence[LaunchRecords]) -> Counter[str]:
    errors, warnings, whole = map(sum, zip(*(launch.findings for launch in launches), strict=True))
    return +Counter(error=errors, warning=warnings, info=whole - errors - warnings)


def _evenness(launches: Sequence[LaunchRecords]) -> Evenness | None:
    """Return the evenness of the launches of several tenants; None without any."""
    shared = [launch for launch in launches if len(launch.tenants) > 1]
    if not shared:
        return None
    rates = [[rate or 0.0 for rate in launch.rates] for launch in shared]
    index, tenants = median(map(jain, rates)), shared[0].tenants
    alike = [found for launch, found in zip(shared, rates, strict=True) if launch.tenants == tenants]
    found = differences(np.log(alike).tolist())
    if found is None:
        return Evenness(index, min(alike[0]) / max(alike[0]))
    return Evenness(index, found.range, tenants[found.least] if found.notable else None, found.p)
