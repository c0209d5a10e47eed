"""The result of a run, or of any records: the answer, its parts as typed values, and every table of a report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Literal, get_args

from cotenant.api.tables import ResultTable, table
from cotenant.frames import pl
from cotenant.report.answer import answer, job_shares, kept_of_all
from cotenant.report.problems import Loss, ReportedFinding
from cotenant.report.summary import JobSummary, Summary, summarise
from cotenant.results.columns import schema
from cotenant.results.table import Rows
from cotenant.stats.kept import Kept

Trust = Literal["clean", "suspect", "INVALID"]
COLOURS = "--soft: #7a8494; --line: #b8c0cc; --accent: #3f7fe0; --wash: #b9d2f7; --paper: #fff"
"""The colours of a page, legible on a light and on a dark notebook."""


@dataclass(frozen=True, slots=True)
class TenantRate:
    """One user's copy of a job."""

    tenant: str
    """Its number, from 0."""
    rate_items_s: float
    """Median over its observations, in items per second; over launches their geometric mean."""
    interval: tuple[float, float] | None
    """95 % interval of the rate; None for too few launches or observations."""
    kept: Kept | None
    """The share of its rate alone that it keeps; None if that was not measured."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """One job: its rates, and the shares that its users keep."""

    name: str
    """The job's name, with the difference if its launches did different work."""
    mix: str
    """The jobs that ran beside each other, joined by +; empty for a job that ran beside copies of itself."""
    unit: str
    """The item that is counted."""
    verdict: str
    """`clean` or `suspect`, after `2/3` if only 2 of 3 launches count; their outcome if none does."""
    rate_items_s: float | None
    """Items per second of all tenants together; None if no launch counts."""
    interval: tuple[float, float] | None
    """95 % interval of that rate; None for too few launches."""
    kept: Kept | None
    """The share of their rates alone that its tenants keep, a geometric mean; None if it is not known."""
    tenants: tuple[TenantRate, ...]
    """The rate of each tenant."""


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The content of records: of one run, or of all that `load` has read.

    Printed, it is the answer in a sentence; a notebook shows the chart as well.

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
    """The table of records behind all the rest; `to_polars` returns its public columns."""
    places: tuple[Path, ...]
    """The files and directories that were read."""
    skipped: tuple[str, ...] = ()
    """A sentence on each file there that is no record."""

    @cached_property
    def summary(self) -> Summary:
        """The contents of a report, from which tables and pages are made. Its fields may change in any version."""
        return summarise(self.records)

    @property
    def kept(self) -> Kept | None:
        """The share of its rate alone that each user keeps, over all jobs: the number of the answer.

        None if it was not measured. Each job of a mix has its own, in `jobs`.
        """
        return kept_of_all(self.summary)

    @property
    def verdict(self) -> Trust:
        """The worst verdict of all jobs: `INVALID` if one has no rate, `suspect` if one has a warning, else `clean`."""
        summary = self.summary
        words = [*map(_trust, (*summary.jobs, *summary.pressed))]
        if len(summary.in_duets):
            words.append(_trust_of(summary.in_duets))
        return max(words, key=get_args(Trust).index, default="INVALID")

    @property
    def findings(self) -> tuple[ReportedFinding, ...]:
        """The findings of all records, errors first: sentence, remedy, number of records, and effect."""
        return self.summary.findings

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The tenants that did not finish, each with its outcome and the reason."""
        return self.summary.losses

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on the launches and files that were left out, and why."""
        return (*self.skipped, *self.summary.notes)

    @property
    def jobs(self) -> tuple[JobResult, ...]:
        """The jobs in the order of their first records."""
        return tuple(map(_job, self.summary.jobs))

    def table(self, name: str = "jobs") -> ResultTable:
        """Return a table of `cotenant report --table`, by its name; `jobs` is the table of a report without that flag.

        Raises CotenantError, with the command that measures it, for an empty table.
        """
        return table(name, self.summary, self.records)

    def to_polars(self) -> pl.DataFrame:
        """Return a row per record, with the columns that `cotenant export` writes."""
        return self.records.frame.select(list(schema()))

    def __str__(self) -> str:
        return answer(self.summary)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from cotenant.report.sections.top import charts_on_top  # matplotlib takes a second to import

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
    """Return the worst verdict of records whose rates are part of no job's number."""
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
