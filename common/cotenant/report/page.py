"""The report as one HTML file: offline, light, dark and in print, everything from files escaped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from cotenant.report import mlbench
from cotenant.report.matrix import MatrixRow
from cotenant.report.meters import NAMES, courses, mean_of
from cotenant.report.mlbench_text import number
from cotenant.report.numbers import ABSENT, interval, rate
from cotenant.report.page_cards import Card, cards
from cotenant.report.page_devices import device_matrix, device_names
from cotenant.report.page_interference import page_blocks
from cotenant.report.page_jobs import job_cards
from cotenant.report.page_machine import machines
from cotenant.report.pictures import curves as picture
from cotenant.report.scaling import Curves, Point
from cotenant.report.summary import PASSED, Job, Summary
from cotenant.report.summary_text import INTERFERENCE, MFU, OF_CEILING, cells, facts, finding_counts, header_of
from cotenant.results.targets import Target
from cotenant.stats.interference import SuiteScore

COLUMNS = ("rate", "95 % interval", "n", "spread", "fairness", "worst/best", "overlap")
POINTS = 8000
"""How many observations a page draws at most: each takes some 30 bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Against:
    """What the suite is held against: targets by their name, and what came of it, per host and by the older formula."""

    name: str
    targets: Mapping[str, Target]
    scores: Mapping[str, SuiteScore]
    older: mlbench.Score | None


def page(
    title: str,
    summary: Summary,
    scaling: Curves,
    against: Against | None = None,
    skipped: Sequence[str] = (),
) -> str:
    """Return the page. `skipped` are sentences on files that are no records."""
    environment = Environment(
        loader=PackageLoader("cotenant.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    columns = (*COLUMNS, *(name for name in header_of(summary.jobs) if name in (INTERFERENCE, MFU, OF_CEILING)))
    devices, matrix = device_matrix(summary)
    everything = (summary.details, summary.solos)
    return environment.get_template("report.html.j2").render(
        title=title,
        subtitle=_subtitle(summary),
        cards=[*_score_cards(against), *cards(summary)],
        missing=_missing(against),
        columns=columns,
        suites=_suites(summary, against, columns),
        jobs=job_cards(summary, POINTS),
        targets=against is not None,
        devices=device_names(devices, summary) if len(devices) > 1 else [],
        matrix=[(row.job, [_share(row, device) for device in devices]) for row in matrix],
        curves=_curves(scaling),
        blocks=page_blocks(summary),
        meters=_meters(summary),
        machines=machines(summary),
        findings=summary.findings,
        losses=summary.losses,
        notes=[*summary.notes, *skipped],
        failed=sum(len(some.where(~pl.col("completed"))) for some in everything),
        total=sum(map(len, everything)),
    )


def _subtitle(summary: Summary) -> str:
    records = summary.details.columns("suite", "hostname", "name", "isolation", "run_id", "start_time")
    launches = records.drop("start_time").n_unique()
    days = sorted(filter(None, records["start_time"].str.slice(0, 10).unique()))
    when = f", {days[0]}" if len(days) == 1 else f", {days[0]} to {days[-1]}" if days else ""
    return f"{records.height:,} records of {launches:,} launches{when}"


def _score_cards(against: Against | None) -> list[Card]:
    if against is None:
        return []
    found = []
    for host, one in against.scores.items():
        name = f"Score, {host}" if len(against.scores) > 1 else "Score"
        span = "no interval: fewer than 3 repetitions have all jobs"
        if one.interval is not None:
            span = f"95 %: {one.interval[0]:.3f} .. {one.interval[1]:.3f}"
        of = f"{len(one.present)} of {len(one.present) + len(one.missing)} jobs"
        value = ABSENT if one.value is None else f"{one.value:.3f}"
        title = name if not one.missing else f"{name} of what ran"
        found.append(Card(title, value, f"weighted geometric mean of rate / {against.name}, {of}; {span}", lead=True))
    if (older := against.older) is not None:
        parts = f"BF (2 PM + ST + 5 PG): PM {older.pm:.2f}, ST {older.st:.2f}, PG {number(older.pg)}"
        parts += f", BF {int(older.failures_pass)}"
        found.append(Card("Original's score", number(older.value), parts))
    return found


def _missing(against: Against | None) -> list[str]:
    if against is None:
        return []
    return list(dict.fromkeys(name for one in against.scores.values() for name in one.missing))


def _suites(summary: Summary, against: Against | None, columns: Sequence[str]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in summary.jobs:
        groups[job.suite, job.host].append(job)
    found = []
    for (suite, host), jobs in groups.items():
        rows = [_row(job, index, against, columns) for job, index in ((job, summary.jobs.index(job)) for job in jobs)]
        found.append({"name": suite or "suite", "facts": facts(jobs, host), "rows": rows})
    return found


def _row(job: Job, index: int, against: Against | None, columns: Sequence[str]) -> dict[str, Any]:
    shown = cells(job)
    target = against.targets.get(job.name) if against is not None else None
    share = None
    if target is not None and job.node is not None and job.name not in mlbench.NOT_IN_PG:
        share = job.node.rate / max(1, len(job.tenants)) / target.rate
    return {
        "label": job.label,
        "anchor": f"job{index}" if job.rates else "",
        "group": job.group,
        "unit": shown["unit"],
        "cells": [shown[name] for name in columns],
        "tenants": shown["tenants"],
        "share": ABSENT if share is None else f"{share:.2f}",
        "verdict": job.verdict,
        "mark": "good" if job.verdict == PASSED else "some" if job.rates else "bad",
        "findings": finding_counts(job.findings).replace(ABSENT, ""),
    }


def _share(row: MatrixRow, device: str) -> tuple[str, str, int]:
    """Return a cell's mean, its range, and how strongly it is coloured: 0 for the best, 100 at 70 % and below."""
    if device not in row.shares:
        return ABSENT, "", 0
    mean, low, high = row.shares[device]
    strength = round(100 * min(1.0, max(0.0, (1 - mean) / 0.3)))
    return f"{100 * mean:.1f}", f"{100 * low:.0f}..{100 * high:.0f}", strength


def _meters(summary: Summary) -> list[dict[str, Any]]:
    shown = []
    found = courses(summary.details)
    several = len({host for host, _, _ in found}) > 1
    for index, (host, quantity, course) in enumerate(found):
        name, unit, _ = NAMES[quantity]
        title = f"{name}, {unit}{f' ({host})' if several else ''}"
        caption = f"mean {mean_of(course):.4g} {unit} over {len(course)} launches"
        shown.append({"title": title, "caption": caption, "svg": Markup(picture.over_launches(course, f"m{index}"))})
    return shown


def _curves(found: Curves) -> list[dict[str, Any]]:
    shown = []
    for number_, (series, points) in enumerate(found.items()):
        drawn = picture.scaling(points, f"s{number_}")
        if drawn is None:
            continue
        rows = [
            (
                point.key,
                rate(point.across.rate),
                interval(*point.across.interval) if point.across.interval else "n too small",
                f"{point.across.n}L",
                ABSENT if point.speedup is None else f"{point.speedup:.2f}x",
                _speedup_interval(point),
            )
            for point in points
        ]
        shown.append({"title": str(series), "svg": Markup(drawn), "rows": rows})
    return shown


def _speedup_interval(point: Point) -> str:
    """Of one device there is none: its speed-up is 1 by definition."""
    if point.speedup is None or point.total_devices == 1:
        return ABSENT
    span = point.speedup_interval
    return "n too small" if span is None else f"{span[0]:.2f}-{span[1]:.2f}"
