"""The jobs of a summary as a grid: a row per job, rates in columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from cotenant.report.answer import UNNAMED, answers
from cotenant.report.basis import basis
from cotenant.report.grid import (
    COMMAND,
    Cell,
    Column,
    Grid,
    Measurement,
    Row,
    RowGroup,
    T,
    Value,
    Words,
    measured_columns,
    number,
    place_columns,
    row,
    text_column,
    word,
)
from cotenant.report.job_cells import (
    INTERFERENCE,
    STEPS,
    all_measured_once,
    findings_cell,
    interference,
    job_verdict_cell,
    kept_cell,
    rate_unit,
    shared,
    steps_cell,
    users_cell,
    users_heading,
    within_cell,
    worst_over_best_cell,
)
from cotenant.report.kept import counted
from cotenant.report.meters import device_load_percent
from cotenant.report.mlbench import NOT_IN_PG
from cotenant.report.numbers import at_most, percent, together_percent
from cotenant.report.problems import first_steps, lines_below, rule_anchors
from cotenant.report.summary import Estimate, JobSummary, Summary
from cotenant.results.launches import grouped
from cotenant.results.targets import Target
from cotenant.text import joined, printable

FIELDS = (
    *("suite", "host", "job", "group", "tenant", "unit", "sharers"),
    *("rate", "low", "high", "launches", "observations", "spread"),
    *("fairness", "worst_over_best", "slowest", "overlap", "device_load_percent"),
    *("verdict", "worst_warning", "audited", "errors", "warnings"),
    *INTERFERENCE,
    *("tflops", "mfu", "ceiling_tflops", "of_ceiling"),
    *STEPS,
)
OF_N = (
    "all users: the sum of their rates, over launches the geometric mean. n: launches, with the 95 % t interval of "
    "their mean (3 and more) and the spread between them; or the observations of a single launch's only user, with the "
    "interval of their median."
)
WITHIN = "within a launch"
LEAST_NAME, LEAST_UNIT, LEAST_VERDICT = 11, 7, 13
"""Characters to which names, units and verdicts are shortened on a narrow terminal."""
OF_WITHIN = (
    "within a launch: half the 95 % interval of the median of a launch's observations, per user (of several launches "
    "the widest); another launch may lie outside of it."
)
OF_WORST = "worst/best (the user that is slower than the others beyond noise)."
OF_STEPS = (
    "p50, p99 of a step: of the user and launch whose p99 is the slowest, with p99's exact 95 % interval over its n "
    "steps, taken as independent."
)
OF_CEILING = "of ceiling: FLOP/s over those of the matrix product that --jobs ceilings measured in the same slices."


def jobs_grid(summary: Summary, targets: Mapping[str, Target] | None = None) -> Grid:
    """Return a row per job, grouped by suite and host; `targets` are of one device.

    For programs there are also rows of the tenants, and a document with the findings, failures and notes.
    """
    once = all_measured_once(summary.jobs)
    columns, groups = _columns(summary, targets or {}, once), []
    for (suite, host), jobs in grouped(summary.jobs, lambda job: (job.suite, job.host)).items():
        rows = [each for job in jobs for each in (row(columns, job), *_tenant_records(job))]
        # The heading has the values that are the same in all rows.
        same = [facts(jobs, host), "each measured once" if once else ""]
        if len(overlaps := _overlaps(jobs)) == 1:
            same.append(f"all users ran together for {together_percent(*overlaps)} of the measured time")
        groups.append(RowGroup(rows, suite or "suite", joined("; ", *same)))
    notes: list[Words] = [((text, "dim"),) for text in explanations(summary)]
    document = {
        "schema": "cotenant-report-1",
        "jobs": [_document(job) for job in summary.jobs],
        "findings": summary.findings,
        "failures": summary.losses,
        "notes": summary.notes,
    }
    notes += lines_below(summary.losses, summary.notes, summary.findings)
    for step in first_steps(summary.findings):
        rule = step.finding.rule.replace("_", " ")
        notes.append(((f"first, {rule} of {step.jobs}: ", "bold"), (step.command, COMMAND)))
    notes += [((text, "bold"),) for text in answers(summary)]
    return Grid(columns, groups, notes=notes, fields=FIELDS, document=document)


def explanations(summary: Summary) -> list[str]:
    """Return the meanings of its grid's columns that are not empty."""
    once = all_measured_once(summary.jobs)
    shown = {
        basis(summary.jobs): True,
        f"{OF_N} {OF_WORST}": bool(summary.jobs),
        OF_WITHIN: any(within_cell(job, once) != Cell() for job in summary.jobs),
        OF_STEPS: any(steps_cell(job) != Cell() for job in summary.jobs),
        OF_CEILING: any(job.compute is not None and job.compute.of_ceiling is not None for job in summary.jobs),
    }
    return [text for text, needed in shown.items() if text and needed]


def _columns(summary: Summary, targets: Mapping[str, Target], once: bool) -> Sequence[Column[JobSummary]]:
    links = {job: f"job{index}" if job.rates else "" for index, job in enumerate(summary.jobs)}
    of_node: Sequence[Column[JobSummary]] = rate_columns(lambda job: job.node)
    rate, *of_launches = of_node
    return (
        *place_columns(lambda job: job, "suite", "host"),
        *main_columns(summary.jobs, links, rule_anchors(summary.findings)),
        replace(rate, heading="all users"),
        *(replace(column, optional=True) for column in of_launches if not once),
        Column(WITHIN, lambda job: within_cell(job, once), left=True, optional=True),
        Column("worst/best", worst_over_best_cell, optional=True),
        Column(
            "overlap",
            lambda job: number(job.overlap, at_most, "overlap"),
            optional=True,
            seen="files" if len(_overlaps(summary.jobs)) == 1 else "everywhere",
        ),
        Column(
            "fairness",
            lambda job: number(job.evenness.jain if job.evenness else None, "{:.4f}".format, "fairness"),
            optional=True,
        ),
        text_column("group", lambda job: job.group),
        Column("shared by", lambda job: word(str(job.sharers)) if shared(job) else Cell(), optional=True),
        Column("p50, p99 of a step", steps_cell, optional=True),
        Column(
            "device load",
            lambda job: number(device_load_percent(job.members), "{:.0f} %".format, "device_load_percent"),
            optional=True,
        ),
        Column("MFU", lambda job: number(_computed(job).get("mfu"), percent), optional=True),
        Column("of ceiling", lambda job: number(_computed(job).get("of_ceiling"), percent), optional=True),
        Column("/ target", lambda job: number(_share(job, targets), "{:.2f}".format), optional=True),
        Column("findings", findings_cell, left=True),
    )


def main_columns(
    jobs: Sequence[JobSummary],
    links: Mapping[JobSummary, str] = MappingProxyType({}),
    anchors: Mapping[str, str] = MappingProxyType({}),
) -> Sequence[Column[JobSummary]]:
    """Return the columns of a suite's end, with which a report's begin; `basis` says their n and intervals.

    `links` and `anchors` are the places of jobs and of rules on a page.
    """
    return (
        Column(
            "job",
            lambda job: Cell(job.label, _named(job) | _computed(job), link=links.get(job, "")),
            left=True,
            least=LEAST_NAME,
        ),
        Column(users_heading(jobs), users_cell, left=True),
        text_column("unit", rate_unit, least=LEAST_UNIT),
        Column("kept", kept_cell, left=True, optional=True),
        Column("verdict", lambda job: job_verdict_cell(job, anchors), left=True, least=LEAST_VERDICT),
    )


def _overlaps(jobs: Sequence[JobSummary]) -> set[float]:
    return {job.overlap for job in jobs if job.overlap is not None}


def facts(jobs: Sequence[JobSummary], host: str) -> str:
    """Return the facts common to all jobs of a suite on one host: `node1: Some Processor; 2 tenants, isolation v1`."""
    works = [dict(job.work) for job in jobs if job.work is not None]
    gpus = ", ".join(sorted({gpu for job in jobs for gpu in job.gpus}))
    parts = [f"{host or UNNAMED}{f': {gpus}' if gpus else ''}"]
    for name, of in (("isolation", "isolation"), ("torch", "software")):
        if values := sorted({work[of] for work in works if work[of]}):
            parts.append(f"{name} {', '.join(values)}")
    return "; ".join(parts)


def rate_columns(of: Callable[[T], Estimate | None]) -> Sequence[Column[T]]:
    """Return the columns of rate, interval, n and spread."""

    def rate(item: T) -> Measurement | None:
        if (estimate := of(item)) is None:
            return None
        launches, observations = estimate.launches, estimate.observations
        n = counted(launches, "launches") if observations is None else counted(observations, "observations")
        once = observations is None and launches == 1
        return Measurement(estimate.rate, estimate.interval, n, (launches, observations), once)

    def spread(item: T) -> Cell:
        estimate = of(item)
        return Cell() if estimate is None else number(estimate.spread, percent, "spread")

    rates = measured_columns("rate", rate, ("rate", "low", "high", "launches", "observations"))
    return *rates, Column("spread", spread)


OF_TENANT: Sequence[Column[Estimate]] = rate_columns(lambda estimate: estimate)


def _tenant_records(job: JobSummary) -> Iterator[Row]:
    for tenant, estimate in job.tenants.items():
        own = {"tenant": tenant, **row(OF_TENANT, estimate).record}
        yield Row(values={**_named(job), **own, **interference(job, tenant)})


def _named(job: JobSummary) -> dict[str, Value]:
    return {
        "suite": job.suite,
        "host": job.host,
        "job": job.label,
        "group": job.group,
        "unit": job.unit,
        "sharers": job.sharers,
        "verdict": job.verdict,
    }


def _computed(job: JobSummary) -> dict[str, Any]:
    """Return a job's FLOP/s and shares of ceilings, without the sentence on them, which stands among the notes."""
    return {} if job.compute is None else {name: of for name, of in job.compute._asdict().items() if name != "above"}


def _share(job: JobSummary, targets: Mapping[str, Target]) -> float | None:
    """Return a tenant's mean rate over the target of one device."""
    if job.name not in targets or job.node is None or job.name in NOT_IN_PG:
        return None
    return job.node.rate / max(1, len(job.tenants)) / targets[job.name].rate


def _document(job: JobSummary) -> dict[str, Any]:
    kept = {"node" if who is None else who: of for who, of in job.kept.items()}
    named = {name: printable(value) if isinstance(value, str) else value for name, value in _named(job).items()}
    return named | {
        "launches": job.launches,
        "overlap": job.overlap,
        "device_load_percent": device_load_percent(job.members),
        "node": job.node,
        "tenants": job.tenants,
        "evenness": job.evenness,
        "kept": kept or None,
        "compute": _computed(job) or None,
        "work": job.work and dict(job.work),
        "doubt": job.doubt and {"rule": job.doubt.rule, "records": job.doubt.records},
        "findings": job.findings,
    }
