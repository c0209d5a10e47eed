"""The long table of kept shares: a row per job, user, company and measure.

Interference, mixes, pairs, sharing and pressure are its filters and pivots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from cotenant.frames import pl
from cotenant.report import numbers
from cotenant.report.alone import NO_SLICES, Side, rows_of, sliced, unlike
from cotenant.report.kept import BASELINE, OF_N, kept_columns, kept_values, legend_of, rate_values, rates_over_launches
from cotenant.report.kept_rows import (
    ALONE,
    COPIES,
    FIELDS,
    KEPT,
    MIX,
    PAIR,
    PRESSURE,
    SCHEMA,
    TOGETHER,
    UNSLICED_ALONE,
    UNSLICED_KEPT,
    VALUE,
    WORTH,
    TableRow,
    joules_rows,
    measure_rows,
    rows_of_job,
    why_not,
    work_hash,
)
from cotenant.report.summary import JobSummary, Summary
from cotenant.report.view import Column, RowGroup, View, place_columns
from cotenant.results.identity import natural
from cotenant.results.launches import Work, distinguishing_values, grouped
from cotenant.stats.interference import Rates, log_ratios, mean_kept, rate_ratio
from cotenant.stats.kept import Kept
from cotenant.suite.pressure import level_of

RATIOS = (KEPT, UNSLICED_KEPT, WORTH)
OF_LEVEL = ("benchmark", "mix", "neighbours")
"""Words of a work that name the neighbour, and thereby its level."""
NodeRatios = dict[str, list[tuple[Kept | None, Rates]]]
"""The nodes' ratios, by the names in RATIOS, each with its launches' logarithms."""


@lru_cache(maxsize=1)
def kept_table(summary: Summary) -> pl.DataFrame:
    """Return the table, with the columns of SCHEMA.

    The measure `kept` is the rate together over the rate alone, for each user of a job and, with a null `tenant`, for
    its node; a job without launches that count has one row. Other measures are of all users of a job, or of a mix
    (`job` is null), or geometric means over the jobs of a suite on a host (`job` and `mix` are null).
    """
    copies = (job for job in summary.jobs if job.group != "all" and not job.mix)
    mixed = (job for job in summary.jobs if job.mix)
    of_suites = grouped(copies, lambda job: (job.suite, job.host)).values()
    of_mixes = grouped(mixed, lambda job: (job.suite, job.host, job.mix, job.isolation)).values()
    rows = chain(*map(_of_suite, of_suites), *map(_of_mix, of_mixes), _pressed(summary.pressed))
    return pl.DataFrame([*rows], SCHEMA, orient="row")


class Ways(NamedTuple):
    """A job with slices and without, of equal work; if one of the two is None, `notes` say why."""

    sliced: JobSummary | None
    unsliced: JobSummary | None
    notes: Sequence[str]


def _of_suite(jobs: Sequence[JobSummary]) -> Iterator[TableRow]:
    """Yield the rows of the jobs of one suite on one host, and the geometric means of their nodes' ratios."""
    ratios: NodeRatios = {name: [] for name in RATIOS}
    for of_name in grouped(jobs, lambda job: job.name).values():
        of_ways = [*_ways(of_name)]
        for ways in of_ways:
            yield from _of_ways(ways, ratios, several=len(of_ways) > 1)
        for job in of_name:
            if not job.isolation:
                yield from _of_copies(job, job.tenants)
    for measure, of_jobs in ratios.items():
        if (mean := mean_kept(of_jobs)) is not None:
            place = {"suite": jobs[0].suite, "host": jobs[0].host, "company": COPIES}
            yield place | {"measure": measure, **kept_values(mean, VALUE)}


def _ways(jobs: Sequence[JobSummary]) -> Iterator[Ways]:
    """Yield the jobs of one name, each job with slices paired with the job of equal work without slices."""
    without = [job for job in jobs if job.isolation == NO_SLICES]
    for job in jobs:
        if sliced(job.isolation):
            partner, notes = _partner(job, without)
            without = [other for other in without if other is not partner]
            yield Ways(job, partner, notes)
    for job in without:
        yield Ways(None, job, [] if len(jobs) == 1 else ["nothing equal ran in slices"])


def _partner(job: JobSummary, without: Sequence[JobSummary]) -> tuple[JobSummary | None, list[str]]:
    """Return the job that did equal work without slices, or None and the other jobs' differences."""
    mine, reasons = rows_of(job.members), []
    # A job that never finished comes last: it matches any, since only its name is known.
    for other in sorted(without, key=lambda other: not other.members):
        if (reason := unlike([*mine, *rows_of(other.members)])) is None:
            return other, []
        reasons.append(f"without slices: {reason}")
    return None, list(dict.fromkeys(reasons))


def _of_ways(ways: Ways, ratios: NodeRatios, several: bool) -> Iterator[TableRow]:
    """Yield a job's kept shares with slices and without; if it was measured in two ways, also the ratios between these.

    Append the nodes' ratios to `ratios`.
    """
    jobs = [job for job in ways[:2] if job is not None]
    first, difference = jobs[0], jobs[0].difference if several else ""
    under, free = first.alone or Side(), first.unsliced_alone or Side()
    over, over_free = (Side() if job is None else job.together for job in ways[:2])
    tenants = sorted({tenant for side in (under, over, over_free, free) for tenant in side.tenants}, key=natural)
    is_compared, notes = first.alone is not None or len(jobs) > 1, list[str]()
    if is_compared:
        notes += [*ways.notes, *([f"alone: {under.reason}"] if under.reason else [])]
        notes += [f"{'in' if job is ways.sliced else 'without'} slices: {job.verdict}" for job in jobs if not job.rates]
    yield from _of_copies(first, tenants, notes, difference=difference)
    for job in jobs[1:]:
        yield from _of_copies(job, job.tenants, difference=difference)
    for tenant in (None, *tenants) if is_compared else ():
        lone, beside, free_beside = under.of(tenant), over.of(tenant), over_free.of(tenant)
        common: TableRow = {"suite": first.suite, "host": first.host, "isolation": jobs[-1].isolation}
        common |= {"job": first.cell, "difference": difference, "tenant": tenant, "company": COPIES}
        common["unit"] = first.unit or jobs[-1].unit
        kept, worth = rate_ratio(free_beside, lone), rate_ratio(beside, free_beside)
        if ways.unsliced is not None:
            rates = rate_values(over_free.across(tenant), TOGETHER) | rate_values(under.across(tenant), ALONE)
            baseline = under.baseline if lone else ""
            yield common | {"measure": UNSLICED_KEPT, "baseline": baseline} | rates | kept_values(kept, VALUE)
        if worth is not None:
            yield common | {"measure": WORTH} | kept_values(worth, VALUE)
        if alone := rate_values(free.across(tenant), ALONE):
            yield common | {"measure": UNSLICED_ALONE, "isolation": NO_SLICES} | alone
        if tenant is None:
            in_slices = None if ways.sliced is None else ways.sliced.kept.get(None)
            ratios[KEPT].append((in_slices, log_ratios(beside, lone)))
            ratios[UNSLICED_KEPT].append((kept, log_ratios(free_beside, lone)))
            ratios[WORTH].append((worth, log_ratios(beside, free_beside)))


def _of_copies(job: JobSummary, tenants: Iterable[str], notes: Sequence[str] = (), **more: Any) -> Iterator[TableRow]:
    """Yield the kept shares of the node and of these tenants of a job, and the measures of all its tenants.

    The node's `notes` say why it is not compared, a tenant's notes why it has no share.
    """
    node, *users = rows_of_job(job, COPIES, (None, *tenants), job.alone, **more)
    why = why_not(job)
    measures = [] if why else measure_rows([job], [row for row in users if "sharers" in row])
    unknown = [] if measures else [why or "no repetition has all users together and alone"]
    yield node | {"notes": notes}
    yield from (row | {"notes": unknown} for row in users)
    common = {name: node.get(name) for name in ("suite", "host", "isolation", "job", "difference", "company", "work")}
    yield from (common | row for row in (*measures, *joules_rows(job)))


def _of_mix(jobs: Sequence[JobSummary]) -> Iterator[TableRow]:
    """Yield the kept shares of a mix's tenants, and its measures; each row has all of its notes."""
    users = [row for job in jobs for row in rows_of_job(job, MIX, job.together.tenants, job.alone)]
    users.sort(key=lambda row: natural(row["tenant"]))
    names = [row["job"] for row in users]
    notes = [f"{job.name}: {why}" for job in jobs if (why := why_not(job))]
    if len({job.name for job in jobs}) < len(jobs):
        notes.append("its launches did different work: report on one directory of them")
    launched = {dict(launch.work)["tenants"] for job in jobs for launch in job.rates}
    if not notes and launched != {len(users)}:
        notes.append(f"there are records of {len(users)} of its {max(launched)} users")
    measures = [] if notes else measure_rows(jobs, users)
    if not (notes or measures):
        notes.append("no repetition has all users together and each of their jobs alone")
    company = PAIR if len(users) == 2 and jobs[0].mix == "+".join(names) else MIX
    unknown = dict.fromkeys(VALUE) if notes else {}
    for at, row in enumerate(users):
        neighbours = ",".join(sorted(names[:at] + names[at + 1 :]))
        yield row | {"company": company, "neighbours": neighbours, "notes": notes} | unknown
    for job in jobs:
        if not job.rates:
            yield from rows_of_job(job, company, (None,), job.alone, notes=notes)
    common = {"suite": jobs[0].suite, "host": jobs[0].host, "isolation": jobs[0].isolation, "mix": jobs[0].mix}
    yield from (common | {"company": company} | row for row in measures)


class BesideLevel(NamedTuple):
    """A job beside a neighbour of known pressure."""

    resource: str
    level: int
    job: JobSummary
    neighbour: JobSummary

    @property
    def conditions(self) -> tuple[str, ...]:
        """The common properties of the launches of one curve."""
        job = self.job
        return job.suite, job.host, job.cell, job.isolation, self.resource, self.neighbour.unit, work_hash(job)

    @property
    def work(self) -> Work:
        """The job's work without the neighbour's level."""
        return tuple(pair for pair in self.job.work or () if pair[0] not in OF_LEVEL)


def _pressed(jobs: Sequence[JobSummary]) -> Iterator[TableRow]:
    """Yield jobs' kept shares beside neighbours of known pressure, each curve's levels in rising order."""
    pairs: list[BesideLevel] = []
    for mixed in grouped(jobs, lambda job: (job.suite, job.host, job.isolation, job.mix)).values():
        neighbours = [(level, job) for job in mixed if (level := level_of(job.cell)) is not None]
        for victim in (job for job in mixed if neighbours and level_of(job.cell) is None):
            level, neighbour = max(reversed(neighbours), key=lambda at: len(_starts(at[1]) & _starts(victim)))
            pairs.append(BesideLevel(*level, victim, neighbour))
    for of_curve in grouped(pairs, lambda pair: pair.conditions).values():
        in_time = sorted((pair for pair in of_curve if pair.job.rates), key=lambda pair: max(_starts(pair.job)))
        works: list[Work] = list(dict.fromkeys(pair.work for pair in in_time)) or [()]
        for work in works:
            alike = [pair for pair in of_curve if (pair.work if pair.job.rates else works[-1]) == work]
            for pair in sorted(alike, key=lambda pair: pair.level):
                yield from _of_level(pair, distinguishing_values(work, works))


def _of_level(pair: BesideLevel, difference: str) -> list[TableRow]:
    """Return the rows of a job beside a neighbour of one level."""
    job, first = pair.job, next(iter(pair.neighbour.tenants.values()), None)
    return rows_of_job(
        job,
        PRESSURE,
        job.tenants or (None,),
        job.alone if sliced(job.isolation) else job.unsliced_alone,
        difference=difference,
        neighbours=pair.neighbour.cell,
        resource=pair.resource,
        level=pair.level,
        achieved=first and first.rate,
        achieved_unit=pair.neighbour.unit,
    )


def _starts(job: JobSummary) -> set[str]:
    """Return the starts of a job's launches that count."""
    return {launch.start_time for launch in job.rates}


# The view

OF_KEPT = (
    "kept: together over alone, unsliced_kept: without slices over alone in the slice, worth: together in slices over "
    "together without; other measures are of all users."
)
LISTS = {"doubts": ",", "alone_doubts": ",", "notes": "; "}
"""The columns of lists, and the separators of their parts."""


def _company(company: str, neighbours: str | None, resource: str | None, level: int | None) -> str:
    return f"{resource} {level} %" if resource is not None else neighbours or company


def _ends(_: float, low: float | None, high: float | None, n: int, measure: str) -> str:
    """Return the interval, or why there is none; fairness, which is shrunk for noise, never has one."""
    if measure == "fairness":
        return numbers.ABSENT
    return numbers.span(None if low is None or high is None else (low, high), numbers.ratio_interval, n == 1)


KEPT_COLUMNS = (
    *place_columns("suite", "host"),
    Column("isolation", ("measure", "isolation"), lambda measure, isolation: isolation or "", left=True),
    Column("job", ("measure", "job", "mix", "difference"), lambda measure, *parts: _job(*parts), left=True),
    Column("user", ("measure", "tenant"), lambda measure, tenant: tenant or "all"),
    Column("beside", ("company", "neighbours", "resource", "level"), _company, left=True),
    Column("measure", left=True),
    Column("value", show=numbers.ratio),
    Column("95 % interval", ("value", "low", "high", "n", "measure"), _ends),
    kept_columns("value", VALUE)[-1],
    *rates_over_launches("together", "together")[:1],
    *rates_over_launches("alone", "alone")[:1],
    BASELINE,
    Column("verdict", left=True, optional=True),
    Column("notes", left=True, seen="files"),
)


def _job(job: str | None, mix: str | None, difference: str | None) -> str:
    return f"{job or mix or 'all jobs'}{f' ({difference})' if difference else ''}"


def kept_view(summary: Summary) -> View:
    """Return the long table as a view."""
    table = kept_table(summary)
    frame = table.with_columns(pl.col(name).list.join(between) for name, between in LISTS.items())
    groups = [
        RowGroup(rows, f"kept in {suite or 'suite'}", host)
        for (suite, host), rows in frame.group_by("suite", "host", maintain_order=True)
    ]
    return View("kept", FIELDS, frame, KEPT_COLUMNS, groups, lines=legend_of({OF_KEPT: True, OF_N: True}))
