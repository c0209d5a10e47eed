"""Prints a suite's end: a row per job, a sentence on users' kept shares, and the first things to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from cotenant.errors import CotenantError
from cotenant.finding import Finding
from cotenant.frames import pl
from cotenant.report import scaling
from cotenant.report.answer import answers
from cotenant.report.basis import basis
from cotenant.report.beside import mix_blocks, mix_view
from cotenant.report.duets import duets_view
from cotenant.report.interference import interference_view
from cotenant.report.job_cells import estimate_columns, shared, verdict_cell, verdict_note
from cotenant.report.job_rows import FIELDS, estimate_row, job_row
from cotenant.report.jobs import OF_N, main_columns
from cotenant.report.numbers import at_most
from cotenant.report.pairs import outside_pairs, pairs_view
from cotenant.report.pressure import pressure_curves, pressure_view
from cotenant.report.problems import MOST_AT_END, lines_below, to_do
from cotenant.report.summary import Estimate, JobSummary, Summary
from cotenant.report.time_share import observed_words
from cotenant.report.view import Column, Row, RowGroup, View, Words
from cotenant.results.columns import TENANT
from cotenant.results.record import INVALID
from cotenant.text import joined, many


def suite_views(summary: Summary, printed: Collection[Finding] = (), verbose: bool = False) -> Iterator[View]:
    """Yield the views at a suite's end: a duet's verdict; else jobs, failures, views of pairs, pressure and scaling,
    the share of time that was measured, the answer, and the gravest findings without findings already `printed`.

    If `verbose`, also a row per user, the measures of mixes, the full cost of neighbours, and all findings.
    """
    if summary.in_duets:
        yield duets_view(summary.in_duets)
        return
    yield jobs_at_end(summary)
    yield _lines([*lines_below(summary.losses, (), ())])
    if verbose:
        yield from (view for view in (users_view(summary), mix_view(outside_pairs(summary))) if view.groups)
        yield interference_view(summary)
    if (pairs := pairs_view(summary)).groups:
        yield pairs
    if curves := pressure_curves(summary):
        yield pressure_view(curves)
    if scales := _scaling(summary, verbose):
        yield scaling.scaling_view(scales)
    if share := observed_words(summary):
        yield _lines([((f"{share[0].upper()}{share[1:]}.", "dim"),)])
    yield _lines([((text, "bold"),) for text in answers(summary)])
    below = lines_below((), summary.notes, summary.findings, verbose) if verbose else _to_do(summary, printed)
    yield _lines([*below])


def jobs_at_end(summary: Summary) -> View:
    """Return a row per job, without jobs of pairs, which are in the matrix of pairs."""
    mixes = {block.mix for block in mix_blocks(summary)} - {block.mix for block in outside_pairs(summary)}
    jobs = [job for job in summary.jobs if job.mix not in mixes]
    text = basis(jobs)
    rows = [job_row(job) for job in jobs]
    return View("jobs", FIELDS, rows, main_columns(jobs), lines=[((text, "dim"),)] if text else [])


def _lines(lines: Sequence[Words]) -> View:
    return View("lines", lines=lines)


def _to_do(summary: Summary, printed: Collection[Finding]) -> Iterator[Words]:
    before = {(finding.rule, finding.sentence) for finding in printed}
    new = [
        finding
        for finding in summary.findings
        if finding.severity != "info" and not (finding.alike and (finding.rule, finding.sentence) in before)
    ]
    yield from to_do(new)
    if len(new) > MOST_AT_END:
        yield ((f"{many(len(new) - MOST_AT_END, 'more finding')}: --verbose and report show them.", "dim"),)


def _scaling(summary: Summary, verbose: bool) -> scaling.Curves:
    """Return the curves of several points, if the suite has nothing else, or if `verbose`."""
    try:
        curves = {series: points for series, points in scaling.curves(summary.jobs).items() if len(points) > 1}
    except CotenantError:
        return {}
    on_curves = {point.job for points in curves.values() for point in points}
    return curves if verbose or on_curves >= {job.name for job in summary.jobs} else {}


# A row per user


USERS = (
    Column("user", "tenant"),
    *estimate_columns("rate"),
    Column("overlap", show=at_most),
    Column("verdict", ("verdict", "why"), verdict_cell, left=True),
)


def users_view(summary: Summary) -> View:
    """Return a row per tenant, grouped by job, and for several tenants one for all of them."""
    groups = [RowGroup([*_user_rows(job, summary)], job.label, _job_facts(job)) for job in summary.jobs]
    return View("users", columns=USERS, groups=groups, lines=[((OF_N, "dim"),)], joined=True)


def _job_facts(job: JobSummary) -> str:
    """Return the common facts of a job's tenants."""
    parts = [
        f"{job.unit}/s" if job.unit else "",
        shared(job),
        f"isolation {job.isolation}" if job.isolation else "",
    ]
    if (even := job.evenness) is not None:
        slowest = f" (user {even.slowest})" if even.slowest is not None else ""
        parts.append(f"fairness {even.jain:.4f}, worst/best {even.worst_over_best:.3f}{slowest}")
    return joined("; ", *parts)


def _user_rows(job: JobSummary, summary: Summary) -> Iterator[Row]:
    """Yield the rows of a job; if no launch counts, tenants have outcomes in place of rates."""
    members = job.members
    if job.node is None:
        same = (pl.col("suite") == job.suite) & (pl.col("hostname") == job.host) & (pl.col("name") == job.name)
        members = summary.records.where(same)
    elif len(job.tenants) > 1:
        yield _user_row("all", job.node, job.overlap, job.verdict, verdict_note(job))
    outcome = pl.when("invalid").then(pl.lit(INVALID)).otherwise("outcome").last()
    records = members.columns("overlap", "outcome", "invalid", tenant=TENANT)
    of_tenants = records.group_by("tenant", maintain_order=True).agg(pl.col("overlap").min(), outcome)
    ends = {tenant: ended for tenant, *ended in of_tenants.iter_rows()}
    for tenant in job.tenants or ends:
        overlap, verdict = ends[tenant]
        if job.node is not None:
            verdict = job.verdict if len(job.tenants) == 1 else ""
        why = verdict_note(job) if verdict == job.verdict else ""
        yield _user_row(tenant, job.tenants.get(tenant), overlap, verdict, why)


def _user_row(tenant: str, estimate: Estimate | None, overlap: float | None, verdict: str, why: str) -> Row:
    return {"tenant": tenant, **estimate_row(estimate), "overlap": overlap, "verdict": verdict, "why": why}
