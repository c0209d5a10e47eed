"""The result of a run, or of any records: the answer, its parts as typed values, and every table of a report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from cotenant.api.tables import ResultTable, TableName, table
from cotenant.choices import TRANSCRIPT
from cotenant.report.answer import answer, job_shares, kept_of_all
from cotenant.report.problems import Loss, ReportedFinding
from cotenant.report.summary import JobSummary, Summary, summarise
from cotenant.results.columns import schema
from cotenant.results.table import Rows
from cotenant.stats.kept import Kept

Trust = Literal["clean", "suspect", "INVALID"]
COLOURS = "--soft: #7a8494; --line: #b8c0cc; --accent: #3f7fe0; --wash: #b9d2f7; --paper: #fff"
"""The colours of a page, as they can be read on a notebook's white and on its black."""


@dataclass(frozen=True, slots=True)
class TenantRate:
    """One user's copy of a job."""

    tenant: str
    """Its number, from 0."""
    rate_items_s: float
    """Median over its observations, in items per second; over launches their geometric mean."""
    interval: tuple[float, float] | None
    """95 % interval of the rate; None of too few."""
    kept: Kept | None
    """The share that it keeps of its rate alone; None where that was not measured."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """One job: its rates, and what its users keep."""

    name: str
    """Its name; where launches did different work, also what tells them apart."""
    mix: str
    """The jobs that ran beside each other, joined by +; empty beside copies of its own."""
    unit: str
    """The item that is counted."""
    verdict: str
    """`clean`, `suspect`, how many launches of how many are, or what became of them where none has a number."""
    rate_items_s: float | None
    """Items per second of all tenants together; None where no launch has a number."""
    interval: tuple[float, float] | None
    """95 % interval of that rate; None of too few launches."""
    kept: Kept | None
    """The share of their rates alone that its tenants keep, on the geometric mean; None where that is not known."""
    tenants: tuple[TenantRate, ...]
    """The rate of each tenant."""


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The content of records: of a run, or of whatever `load` was given.

    Printed it is the answer in a sentence; a notebook shows the chart as well.

        >>> result = cotenant.load("output", name="wlm")
        >>> f"{result.kept.value:.3f}", f"{result.kept.interval[0]:.3f}", result.kept.n, result.kept.over
        ('0.600', '0.597', 5, 'launches')
        >>> result.verdict, [finding.rule for finding in result.findings]
        ('suspect', ['foreign_load'])
        >>> [f"{tenant.rate_items_s:.0f}" for tenant in result.jobs[0].tenants]
        ['7682', '7605']
        >>> result.table("interference").to_polars()["kept"].round(3)[0]
        0.6
    """

    records: Rows
    """The records as a table, of which this is made; `to_polars` has its public columns."""
    places: tuple[Path, ...]
    """Where they were read."""
    skipped: tuple[str, ...] = ()
    """A sentence on each file there that is no record."""

    @cached_property
    def summary(self) -> Summary:
        """Everything that a report says, from which tables and pages are made. Its fields may change in any version."""
        made = summarise(self.records)
        if not any([*place.glob(f"*{TRANSCRIPT}")] for place in self.places):
            return made
        from cotenant.report.challenges import challenge_lines  # of a room that may be left out

        return replace(made, notes=(*challenge_lines(made, self.places), *made.notes))

    @property
    def kept(self) -> Kept | None:
        """The share that each user keeps of what it has alone: the number of the answer, over all jobs.

        None where that was not measured. Jobs of a mix have one each, in `jobs`.
        """
        return kept_of_all(self.summary)

    @property
    def verdict(self) -> Trust:
        """The worst of all jobs: `INVALID` where one has no number, `suspect` where one has a warning, else `clean`."""
        summary = self.summary
        beside = (rows for rows in (summary.under_pressure, summary.in_duets) if len(rows))
        words = [*map(_trust, (*summary.jobs, *summary.pressed)), *map(_trust_of, beside)]
        return max(words, key=get_args(Trust).index, default="INVALID")

    @property
    def findings(self) -> tuple[ReportedFinding, ...]:
        """The findings of all records, errors first: sentence, remedy, how many records have it, and its effect."""
        return self.summary.findings

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The tenants that did not finish, each with its outcome and why."""
        return self.summary.losses

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was left out, and why."""
        return (*self.skipped, *self.summary.notes)

    @property
    def jobs(self) -> tuple[JobResult, ...]:
        """The jobs in the order of their first records."""
        return tuple(map(_job, self.summary.jobs))

    def table(self, name: TableName = "jobs") -> ResultTable:
        """Return a table of `cotenant report --table`, by its name; `jobs` is the one without a flag.

        Raises CotenantError, with the command that measures it, where there is nothing to show.
        """
        return table(name, self.summary, self.records)

    def to_polars(self) -> pl.DataFrame:
        """Return a row per record, with the columns of docs/records.md: those that `cotenant export` writes."""
        return self.records.frame.select(list(schema()))

    def __str__(self) -> str:
        return answer(self.summary)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from cotenant.report.page import charts_on_top  # matplotlib takes a second to import

        charts = "".join(
            f"<figure><b>{escape(chart.title)}</b>{chart.svg}<small>{escape(chart.caption)}</small></figure>"
            for chart in charts_on_top(self.summary)
        )
        return f'<div style="{COLOURS}"><p>{escape(str(self))}</p>{charts}</div>'


def _trust(job: JobSummary) -> Trust:
    if not job.rates:
        return "INVALID"
    return "clean" if job.doubt is None else "suspect"


def _trust_of(rows: Rows) -> Trust:
    """Return the worst verdict of records whose rates are in no job's number."""
    states = rows.columns("invalid", "completed")
    if states["invalid"].any() or not states["completed"].all():
        return "INVALID"
    return "suspect" if "warning" in rows.findings()["severity"] else "clean"


def _job(job: JobSummary) -> JobResult:
    shares = job_shares(job)
    node = job.node
    return JobResult(
        name=job.label,
        mix=job.mix,
        unit=job.unit,
        verdict=job.verdict,
        rate_items_s=None if node is None else node.rate,
        interval=None if node is None else node.interval,
        kept=shares.kept if shares is not None and shares.of_alone else None,
        tenants=tuple(
            TenantRate(tenant, estimate.rate, estimate.interval, job.kept.get(tenant))
            for tenant, estimate in job.tenants.items()
        ),
    )
