"""The report as one HTML file: offline, light, dark and in print, everything from files escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from markupsafe import Markup

from cotenant.report import mlbench
from cotenant.report.jobs import findings_grid, jobs_grid, losses_grid
from cotenant.report.matrix import matrix_grid
from cotenant.report.meters import NAMES, courses, mean_of
from cotenant.report.numbers import ABSENT, plain
from cotenant.report.page_cards import Card, cards
from cotenant.report.page_devices import device_matrix, device_names
from cotenant.report.page_interference import page_blocks
from cotenant.report.page_jobs import job_cards
from cotenant.report.page_machine import machines
from cotenant.report.pictures import curves as picture
from cotenant.report.render_html import html, template
from cotenant.report.scaling import Curves, scaling_grid
from cotenant.report.summary import Summary
from cotenant.results.targets import Target
from cotenant.stats.interference import SuiteScore

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
    devices, rows = device_matrix(summary)
    everything = (summary.records, summary.solos)
    return template("report.html.j2").render(
        title=title,
        subtitle=_subtitle(summary),
        cards=[*_score_cards(against), *cards(summary)],
        missing=_missing(against),
        results=html(jobs_grid(summary, {} if against is None else against.targets)),
        jobs=job_cards(summary, POINTS),
        devices=html(matrix_grid(devices, device_names(devices, summary), rows)) if len(devices) > 1 else "",
        curves=_curves(scaling),
        blocks=page_blocks(summary),
        meters=_meters(summary),
        machines=machines(summary),
        findings=html(findings_grid(summary)) if summary.findings else "",
        losses=html(losses_grid(summary)) if summary.losses else "",
        notes=[*summary.notes, *skipped],
        failed=sum(len(some.where(~pl.col("completed"))) for some in everything),
        total=sum(map(len, everything)),
    )


def _subtitle(summary: Summary) -> str:
    records = summary.records.columns("suite", "hostname", "name", "isolation", "run_id", "start_time")
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
        parts = f"BF (2 PM + ST + 5 PG): PM {older.pm:.2f}, ST {older.st:.2f}, PG {plain(older.pg)}"
        parts += f", BF {int(older.failures_pass)}"
        found.append(Card("Original's score", plain(older.value), parts))
    return found


def _missing(against: Against | None) -> list[str]:
    if against is None:
        return []
    return list(dict.fromkeys(name for one in against.scores.values() for name in one.missing))


def _meters(summary: Summary) -> list[dict[str, Any]]:
    shown = []
    found = courses(summary.records)
    several = len({host for host, _, _ in found}) > 1
    for index, (host, quantity, course) in enumerate(found):
        name, unit, _ = NAMES[quantity]
        title = f"{name}, {unit}{f' ({host})' if several else ''}"
        caption = f"mean {mean_of(course):.4g} {unit} over {len(course)} launches"
        shown.append({"title": title, "caption": caption, "svg": Markup(picture.over_launches(course, f"m{index}"))})
    return shown


def _curves(found: Curves) -> list[dict[str, Any]]:
    """Return a picture and a table per series that has several points."""
    shown = []
    for at, (series, points) in enumerate(found.items()):
        drawn = picture.scaling(points, f"s{at}")
        if drawn is not None:
            grid = scaling_grid({series: points})
            table = html(replace(grid, groups=[replace(grid.groups[0], title="")]))
            shown.append({"title": str(series), "svg": Markup(drawn), "table": table})
    return shown
