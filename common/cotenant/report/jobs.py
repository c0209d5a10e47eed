"""The jobs of a summary: a row per job, rates in columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from cotenant.report.answer import UNNAMED, answers
from cotenant.report.basis import basis
from cotenant.report.job_cells import (
    all_measured_once,
    estimate_columns,
    kept_text,
    rate_unit,
    steps_text,
    users_cell,
    users_heading,
    verdict_cell,
    within_text,
)
from cotenant.report.job_rows import FIELDS, STEPS, job_row, user_rows
from cotenant.report.kept import kept_fields
from cotenant.report.mlbench import NOT_IN_PG
from cotenant.report.numbers import ABSENT, at_most, percent, together_percent
from cotenant.report.problems import finding_counts, findings_view, first_steps, lines_below, losses_view, rule_anchors
from cotenant.report.summary import JobSummary, Summary
from cotenant.report.view import COMMAND, Cell, Column, Row, RowGroup, View, Words, place_columns
from cotenant.results.launches import grouped
from cotenant.results.targets import Target
from cotenant.text import joined

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
EXPLAINED = {"halves": OF_WITHIN, "step_p99_ns": OF_STEPS, "of_ceiling": OF_CEILING}
"""The meanings of optional columns, by the field that is not null where they are shown."""


def jobs_view(summary: Summary, targets: Mapping[str, Target] | None = None) -> View:
    """Return a row per job, grouped by suite and host; `targets` are of one device.

    For programs there are also rows of users, and parts with the findings and failures.
    """
    jobs = summary.jobs
    once, rows, groups = all_measured_once(jobs), list[Row](), list[RowGroup]()
    links = {job: f"job{index}" if job.rates else "" for index, job in enumerate(jobs)}
    for (suite, host), members in grouped(jobs, lambda job: (job.suite, job.host)).items():
        shown = list[Row]()
        for job in members:
            row, users = job_row(job), [*user_rows(job)]
            rows += [row, *users]
            of_people = {
                "place": links[job],
                "halves": _halves(job, users, once),
                "of_target": _share(job, targets or {}),
            }
            shown.append(row | of_people)
        # The heading has the values that all rows share.
        same = [facts(members, host), "each measured once" if once else ""]
        if len(overlaps := _overlaps(members)) == 1:
            same.append(f"all users ran together for {together_percent(*overlaps)} of the measured time")
        groups.append(RowGroup(shown, suite or "suite", joined("; ", *same)))
    said = answers(summary)
    meanings: list[Words] = [((text, "dim"),) for text in explanations(jobs, groups)]
    return View(
        "jobs",
        FIELDS,
        rows,
        _columns(summary, once),
        groups,
        lines=[*meanings, *_problems(summary), *(((text, "bold"),) for text in said)],
        notes=summary.notes,
        sentences=said,
        parts=[findings_view(summary.findings), losses_view(summary.losses)],
    )


def _problems(summary: Summary) -> Iterator[Words]:
    """Yield failures, notes and findings, and the commands that resolve the first of them."""
    yield from lines_below(summary.losses, summary.notes, summary.findings)
    for step in first_steps(summary.findings):
        rule = step.finding.rule.replace("_", " ")
        yield (f"first, {rule} of {step.jobs}: ", "bold"), (step.command, COMMAND)


def explanations(jobs: Sequence[JobSummary], groups: Sequence[RowGroup]) -> list[str]:
    """Return the meanings of the columns that are not empty in these groups of a view of jobs."""
    seen = {name for group in groups for row in group.each() for name in EXPLAINED if row[name] is not None}
    shown = {basis(jobs): True, f"{OF_N} {OF_WORST}": bool(jobs)}
    shown |= {text: name in seen for name, text in EXPLAINED.items()}
    return [text for text, needed in shown.items() if text and needed]


def _columns(summary: Summary, once: bool) -> list[Column]:
    rate, *of_launches = estimate_columns("all users")
    in_heading = len(_overlaps(summary.jobs)) == 1
    return [
        *place_columns("suite", "host"),
        *main_columns(summary.jobs, rule_anchors(summary.findings)),
        rate,
        *(replace(column, optional=True) for column in of_launches if not once),
        Column(WITHIN, "halves", within_text, left=True, optional=True),
        Column("worst/best", ("worst_over_best", "slowest"), _worst_over_best, optional=True),
        Column("overlap", show=at_most, optional=True, seen="files" if in_heading else "everywhere"),
        Column("fairness", show="{:.4f}".format, optional=True),
        Column("group", left=True),
        Column("shared by", "sharers", lambda sharers: str(sharers) if sharers > 1 else ABSENT, optional=True),
        Column("p50, p99 of a step", STEPS, steps_text, optional=True),
        Column("device load", "device_load_percent", "{:.0f} %".format, optional=True),
        Column("MFU", "mfu", percent, optional=True),
        Column("of ceiling", "of_ceiling", percent, optional=True),
        Column("/ target", "of_target", "{:.2f}".format, optional=True),
        Column("findings", ("errors", "warnings", "infos"), _findings, left=True),
    ]


def main_columns(jobs: Sequence[JobSummary], anchors: Mapping[str, str] = MappingProxyType({})) -> list[Column]:
    """Return the columns at a suite's end, the first ones of a report's table; `basis` states their n and intervals.

    `anchors` are the places of rules on a page; a row's `place` is its job's.
    """

    def verdict(text: str, why: str, rule: str | None) -> Cell:
        return replace(verdict_cell(text, why), note_link=anchors.get(rule or "", ""))

    return [
        Column("job", ("job", "place"), lambda job, place: Cell(job, link=place or ""), left=True, least=LEAST_NAME),
        Column(users_heading(jobs), "rates", users_cell, left=True),
        Column("unit", ("unit", "rates"), rate_unit, left=True, least=LEAST_UNIT),
        Column("kept", kept_fields("users_kept"), kept_text, left=True, optional=True),
        Column("verdict", ("verdict", "why", "worst_warning"), verdict, left=True, least=LEAST_VERDICT),
    ]


def _worst_over_best(ratio: float, slowest: str | None) -> str:
    return f"{ratio:.3f}{'' if slowest is None else f' ({slowest})'}"


def _findings(errors: int, warnings: int, infos: int) -> Cell:
    counts = finding_counts({"error": errors, "warning": warnings})
    return Cell(counts, link="findings" if errors + warnings + infos else "")


def _overlaps(jobs: Sequence[JobSummary]) -> set[float]:
    return {job.overlap for job in jobs if job.overlap is not None}


def _halves(job: JobSummary, users: Sequence[Row], once: bool) -> list[float] | None:
    """Return the users' half intervals within a launch; None without a rate, or if the job's interval is shown.

    If all jobs were measured `once`, the table has no column for a job's interval.
    """
    if job.node is None or (job.node.interval is not None and not once):
        return None
    return [half for row in users if (half := row["within"]) is not None] or None


def facts(jobs: Sequence[JobSummary], host: str) -> str:
    """Return the facts common to all jobs of a suite on one host: `node1: Some Processor; isolation v1; torch 2.9`."""
    works = [dict(job.work) for job in jobs if job.work is not None]
    gpus = ", ".join(sorted({gpu for job in jobs for gpu in job.gpus}))
    parts = [f"{host or UNNAMED}{f': {gpus}' if gpus else ''}"]
    for name, column in (("isolation", "isolation"), ("torch", "software")):
        if values := sorted({work[column] for work in works if work[column]}):
            parts.append(f"{name} {', '.join(values)}")
    return "; ".join(parts)


def _share(job: JobSummary, targets: Mapping[str, Target]) -> float | None:
    """Return a tenant's mean rate over the target of one device."""
    if job.name not in targets or job.node is None or job.name in NOT_IN_PG:
        return None
    return job.node.rate / max(1, len(job.tenants)) / targets[job.name].rate
