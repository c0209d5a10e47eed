"""Hosts side by side: a row per job, and for each host a column with its users' rates and what they keep."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cotenant.report.answer import MOST_HOSTS, UNNAMED
from cotenant.report.grid import Cell, Column, Grid, RowGroup, row, word
from cotenant.report.job_cells import tenant_rates, verdict_note
from cotenant.report.kept import percents
from cotenant.report.numbers import ABSENT
from cotenant.report.summary import JobSummary, Summary
from cotenant.results.launches import grouped
from cotenant.results.record import CLEAN

TITLE = "Hosts side by side"
LEGEND = (
    "Each user's rate, and what all users of the host keep of their rates alone there; "
    "compare A B --allow host judges whether two hosts differ beyond noise."
)


def hosts_grid(summary: Summary) -> Grid:
    """Return the jobs of a few hosts side by side; without a group where there is one host, or more than a few."""
    hosts = list(summary.hosts)
    if not 1 < len(hosts) <= MOST_HOSTS:
        return Grid((), ())
    columns: list[Column[Sequence[JobSummary]]] = [
        Column("job", lambda jobs: word(jobs[0].label), left=True),
        Column("unit", lambda jobs: word(f"{jobs[0].unit}/s" if jobs[0].unit else ABSENT), left=True),
        *(Column(host or UNNAMED, partial(_of_host, host), left=True) for host in hosts),
    ]
    jobs = grouped(summary.jobs, lambda job: (job.suite, job.label, job.unit)).values()
    return Grid(columns, [RowGroup([row(columns, each) for each in jobs], notes=[((LEGEND, "dim"),)])], TITLE)


def _of_host(host: str, jobs: Sequence[JobSummary]) -> Cell:
    job = next((job for job in jobs if job.host == host), None)
    if job is None:
        return Cell()
    kept = job.kept.get(None)
    parts = ["" if kept is None else f"keep {percents(kept)}", "" if job.verdict == CLEAN else job.verdict]
    return Cell(tenant_rates(job), note=", ".join(filter(None, [*parts, verdict_note(job)])))
