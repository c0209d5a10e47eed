"""Prints a suite's end: a row per tenant, failures and the worst findings, and the rate that each user really gets."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from cotenant.errors import CotenantError
from cotenant.finding import Finding
from cotenant.frames import pl
from cotenant.report import scaling
from cotenant.report.answer import answers
from cotenant.report.beside import outside_pairs
from cotenant.report.beside_views import mix_grid, pairs_grid
from cotenant.report.duets import duets_grid
from cotenant.report.grid import Column, Grid, RowGroup, Words, number, row, word
from cotenant.report.interference import interference_grid
from cotenant.report.job_cells import bound, interference_cell, shared, verdict_cell, verdict_note
from cotenant.report.jobs import OF_N, rate_columns
from cotenant.report.numbers import at_most
from cotenant.report.problems import MOST_AT_END, gravest, lines_below
from cotenant.report.summary import Estimate, JobSummary, Summary
from cotenant.report.time_share import observed_words
from cotenant.results.columns import TENANT
from cotenant.results.record import INVALID
from cotenant.text import joined, many

OF_N_IN_SHORT = "rate: the median; of all users their sum. n: o observations of one launch, L launches."


class TenantLine(NamedTuple):
    """One tenant of a job, or all of them."""

    tenant: str
    estimate: Estimate | None
    overlap: float | None = None
    verdict: str = ""
    doubt: str = ""


TENANTS: Sequence[Column[TenantLine]] = (
    Column("user", lambda line: word(line.tenant, "tenant")),
    *rate_columns(lambda line: line.estimate),
    Column("overlap", lambda line: number(line.overlap, at_most)),
    Column("verdict", lambda line: verdict_cell(line.verdict, line.doubt), left=True),
)


def tenants_grid(summary: Summary, printed: Collection[Finding] = (), verbose: bool = False) -> Grid:
    """Return a row per tenant, grouped by job, and one of all of them where there are several.

    Failures and the worst findings stand below, without those that were `printed` before; if `verbose`, all findings,
    the launches left out, and the columns' full meanings.
    """
    groups = [
        RowGroup([row(TENANTS, line) for line in _tenant_lines(job, summary)], job.label, _job_facts(job))
        for job in summary.jobs
    ]
    if verbose:
        notes: list[Words] = [((OF_N, "dim"),), *lines_below(summary.losses, summary.notes, summary.findings, verbose)]
    else:
        before = {(finding.rule, finding.sentence) for finding in printed}
        new = [
            finding
            for finding in summary.findings
            if finding.severity != "info" and not (finding.alike and (finding.rule, finding.sentence) in before)
        ]
        notes = [((OF_N_IN_SHORT, "dim"),), *lines_below(summary.losses, (), ()), *gravest(new)]
        if len(new) > MOST_AT_END:
            notes.append(((f"{many(len(new) - MOST_AT_END, 'more finding')}: --verbose and report show them.", "dim"),))
    return Grid(TENANTS, groups, notes=notes, joined=True)


def _job_facts(job: JobSummary) -> str:
    """Return the facts that all tenants of a job share."""
    parts = [
        f"{job.unit}/s" if job.unit else "",
        bound(job),
        shared(job),
        f"isolation {job.isolation}" if job.isolation else "",
    ]
    if (even := job.evenness) is not None:
        slowest = f" (user {even.slowest})" if even.slowest is not None else ""
        parts.append(f"fairness {even.jain:.4f}, worst/best {even.worst_over_best:.3f}{slowest}")
    if None in job.kept:
        interference = interference_cell(job)
        parts.append(f"interference {interference.text} {interference.note}")
    return joined("; ", *parts)


def _tenant_lines(job: JobSummary, summary: Summary) -> Iterator[TenantLine]:
    """Yield the lines of a job; if no launch counts, tenants have outcomes in place of rates."""
    own = job.members
    if job.node is None:
        same = (pl.col("suite") == job.suite) & (pl.col("hostname") == job.host) & (pl.col("name") == job.name)
        own = summary.records.where(same)
    elif len(job.tenants) > 1:
        yield TenantLine("all", job.node, job.overlap, job.verdict, verdict_note(job))
    outcome = pl.when("invalid").then(pl.lit(INVALID)).otherwise("outcome").last()
    records = own.columns("overlap", "outcome", "invalid", tenant=TENANT)
    of_tenants = records.group_by("tenant", maintain_order=True).agg(pl.col("overlap").min(), outcome)
    lines = {tenant: ended for tenant, *ended in of_tenants.iter_rows()}
    for tenant in job.tenants or lines:
        overlap, verdict = lines[tenant]
        if job.node is not None:
            verdict = job.verdict if len(job.tenants) == 1 else ""
        doubt = verdict_note(job) if verdict == job.verdict else ""
        yield TenantLine(tenant, job.tenants.get(tenant), overlap, verdict, doubt)


def suite_grids(summary: Summary, printed: Collection[Finding] = (), verbose: bool = False) -> Iterator[Grid]:
    """Yield the grids at a suite's end: a duet's verdict; else the tenants, the shares that different jobs keep beside
    each other, the scaling curves, and last the answer, a sentence on each user's share.

    Before the answer comes the share of time that was observed; if `verbose`, also the full cost of neighbours.
    """
    if summary.in_duets:
        yield duets_grid(summary.in_duets)
        return
    if summary.jobs or not summary.pressed:
        yield tenants_grid(summary, printed, verbose)
    beside = [mix_grid(outside_pairs(summary)), pairs_grid(summary)]
    if verbose:
        beside.append(interference_grid(summary))
    yield from (grid for grid in beside if grid.groups)
    with contextlib.suppress(CotenantError):
        curves = {series: points for series, points in scaling.curves(summary.jobs).items() if len(points) > 1}
        if curves:
            yield scaling.scaling_grid(curves)
    if share := observed_words(summary):
        yield Grid((), (), notes=[((f"{share[0].upper()}{share[1:]}.", "dim"),)])
    yield Grid((), (), notes=[((text, "bold"),) for text in answers(summary)])
