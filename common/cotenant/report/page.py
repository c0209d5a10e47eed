"""The report as one HTML file: offline, light, dark and in print, everything from files escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from markupsafe import Markup

from cotenant.report import mlbench
from cotenant.report.interference import interference_blocks, interference_grid
from cotenant.report.jobs import jobs_grid
from cotenant.report.matrix import device_matrix, device_names, matrix_grid
from cotenant.report.meters import NAMES, courses, mean_of
from cotenant.report.numbers import ABSENT, at_most, plain
from cotenant.report.page_jobs import job_cards
from cotenant.report.pictures import curves as picture
from cotenant.report.problems import findings_grid, losses_grid
from cotenant.report.renderers import Card, html, template
from cotenant.report.scaling import Curves, scaling_grid
from cotenant.report.summary import PASSED, Summary
from cotenant.results.decoded import list_of, mapping_of
from cotenant.results.read import again
from cotenant.results.record import MOST
from cotenant.results.table import AT, Rows
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
        findings=html(findings_grid(summary.findings)) if summary.findings else "",
        losses=html(losses_grid(summary.losses)) if summary.losses else "",
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


def cards(summary: Summary) -> list[Card]:
    """Return what can be said of any directory of records; what nobody measured has no card."""
    jobs = summary.jobs
    passed = sum(job.verdict == PASSED for job in jobs)
    found = [Card("Jobs passed", f"{passed} / {len(jobs)}", _of_launches(summary))]
    even = [(job.evenness.worst_over_best, job.label) for job in jobs if job.evenness is not None]
    if even:
        worst, name = min(even)
        found.append(Card("Worst / best tenant", f"{worst:.3f}", f"the least even job: {name}"))
    overlaps = [job.overlap for job in jobs if job.overlap is not None]
    if overlaps:
        found.append(
            Card("Overlap", at_most(min(overlaps)), "of the measured time, at the least, lay beside all tenants")
        )
    errors, warnings = (sum(one.severity == name for one in summary.findings) for name in ("error", "warning"))
    found.append(Card("Findings", f"{errors} + {warnings}", "errors, and warnings, each counted once"))
    return found


def _of_launches(summary: Summary) -> str:
    counts = [len(job.rates) for job in summary.jobs]
    least, most = min(counts, default=0), max(counts, default=0)
    several = "" if most == 1 else "es"
    return f"{least if least == most else f'{least} to {most}'} launch{several} each count"


Facts = list[tuple[str, str]]


def machines(summary: Summary) -> list[tuple[str, Facts]]:
    """Return each host's name and facts, of its newest record; what a record does not know is left out."""
    in_order = summary.records.by("start_time")
    hosts = in_order.columns("hostname", "isolation", "gpu").with_columns(pl.Series(AT, in_order.at, pl.UInt32))
    found = []
    for host, isolation, gpu, at in hosts.group_by("hostname", maintain_order=True).last().iter_rows():
        record = next((record for _, record in again(Rows(in_order.table, [at]))), None)
        machine = mapping_of(record.at("machine")) if record is not None else {}
        found.append((host or "an unnamed host", _facts(machine, isolation, gpu)))
    return found


def _facts(machine: Mapping[str, Any], isolation: str, gpu: str) -> Facts:
    processors, software = mapping_of(machine.get("processors")), mapping_of(machine.get("software"))
    nodes, accelerators = list_of(machine.get("nodes")), list_of(machine.get("accelerators"))
    found = {
        "Processor": machine.get("model_name"),
        "Usable": _processors(processors),
        "Memory": _gib(machine.get("memory_bytes")),
        "NUMA nodes": len(nodes) if nodes else None,
        "Accelerators": _accelerators(accelerators) or (gpu if gpu != machine.get("model_name") else None),
        "Isolation": isolation,
        "System": software.get("distribution"),
        "Kernel": software.get("kernel"),
        "Python": software.get("python"),
        "Packages": ", ".join(f"{name} {version}" for name, version in mapping_of(software.get("packages")).items()),
        "Torch": _torch(mapping_of(machine.get("torch"))),
        "Checkout": _git(mapping_of(machine.get("git"))),
    }
    return [(name, str(value)) for name, value in found.items() if value]


def _processors(known: Mapping[str, Any]) -> str:
    if not known:
        return ""
    quota = f", quota of {known['quota']}" if known.get("quota") else ""
    parts = {"packages": known.get("packages"), "cores": known.get("cores")}
    said = ", ".join(f"{value} {name}" for name, value in parts.items() if value)
    return f"processors {known.get('usable')} of {known.get('online')} ({said}){quota}"


def _accelerators(known: Sequence[Any]) -> str:
    names = [str(mapping_of(one).get("name") or "unnamed") for one in known]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))


def _torch(known: Mapping[str, Any]) -> str:
    parts = (f"{name} {known[name]}" for name in ("cuda", "hip", "cudnn") if known.get(name))
    precision = known.get("float32_matmul_precision")
    return ", ".join([*parts, *([f"float32 products: {precision}"] if precision else [])])


def _git(known: Mapping[str, Any]) -> str:
    commit = str(known.get("commit") or "")[:12]
    return f"{commit}{', with changes' if known.get('dirty') else ''}" if commit else ""


def _gib(value: Any) -> str:
    return f"{value / 2**30:.1f} GiB" if isinstance(value, int) and 0 < value < MOST else ""


def page_blocks(summary: Summary) -> list[tuple[Markup, Markup | None]]:
    """Return a table and a picture for each suite and host; none where nothing was measured in two ways."""
    grid = interference_grid(summary)
    found = []
    for index, (group, block) in enumerate(zip(grid.groups, interference_blocks(summary), strict=True)):
        drawn = picture.kept(block, f"k{index}")
        found.append((html(replace(grid, groups=[group])), None if drawn is None else Markup(drawn)))
    return found
