"""One card per job: its node's rate, what its devices did, its tenants' strips, its newest launch's timeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from statistics import fmean

import numpy as np
import polars as pl
from markupsafe import Markup

from cotenant.report.meters import NAMES
from cotenant.report.numbers import at_most, interval, percent, rate
from cotenant.report.pictures.curves import FEW, Trace, over_time
from cotenant.report.pictures.tenants import Strip, strips, timeline
from cotenant.report.summary import Estimate, JobSummary, Summary
from cotenant.results.drawn import DEVICE_QUANTITIES, Course, Drawn, Kind, courses_of
from cotenant.results.read import again, drawn
from cotenant.results.table import Rows
from cotenant.text import printable

LEAST_POINTS = 20


@dataclass(frozen=True, slots=True)
class JobCard:
    """What the page shows of one job."""

    anchor: str
    label: str
    facts: str
    rate: str
    unit: str
    span: str
    meters: str
    pictures: tuple[Picture, ...]


def job_cards(summary: Summary, points: int) -> list[JobCard]:
    """Return a card per job that has a rate; all of them together draw about `points` observations."""
    arrays = sum(len(job.members) for job in summary.jobs)
    most = max(LEAST_POINTS, points // max(1, arrays))
    return [_card(job, index, most) for index, job in enumerate(summary.jobs) if job.node is not None]


def _card(job: JobSummary, index: int, most: int) -> JobCard:
    assert job.node is not None
    name = f"j{index}"
    newest = max(job.rates, key=lambda one: one.start_time).run_id
    seen = drawn(job.members)
    launch = job.members.where(pl.col("run_id") == newest)
    # All records of a launch hold the same samples over time.
    courses = next((found for _, record in again(launch) if (found := courses_of(record.fields))), [])
    shown = [_strips(job, seen, most, f"{name}s"), _timeline(launch, seen, newest, f"{name}t")]
    shown += over_time_pictures(courses, name)
    return JobCard(
        anchor=f"job{index}",
        label=job.label,
        facts=_facts(job),
        rate=rate(job.node.rate),
        unit=f"{job.unit}/s" if job.unit else "items/s",
        span=span_of(job.node),
        meters="; ".join(part for part in (_meters(seen), _compute(job)) if part),
        pictures=tuple(one for one in shown if one is not None),
    )


def span_of(found: Estimate) -> str:
    """Return the interval and n in words."""
    of = f"{found.launches} launch{'es' if found.launches > 1 else ''}"
    if found.observations is not None:
        of = f"{found.observations} observations of 1 launch"
    return f"95 %: {interval(*found.interval)}, {of}" if found.interval else f"{of}: too few for an interval"


def _facts(job: JobSummary) -> str:
    batch_size, precision = job.members.columns("batch_size", "precision").row(0)
    batch = f"batch {batch_size}" if batch_size is not None else ""
    tenants = f"{len(job.tenants)} tenant{'s' if len(job.tenants) > 1 else ''}"
    return " · ".join(part for part in (job.group, tenants, batch, precision) if part)


def _meters(seen: Sequence[Drawn]) -> str:
    """Return what a device did on average while the launches that count were timed."""
    said = []
    for quantity in DEVICE_QUANTITIES:
        found = [meter.mean for one in seen for meter in one.meters if meter.quantity == quantity]
        if found:
            name, unit, scale = NAMES[quantity]
            said.append(f"{name.lower()} {fmean(found) / scale:.4g} {unit}")
    return f"per device: {', '.join(said)}" if said else ""


def _compute(job: JobSummary) -> str:
    """Return what a tenant computed, and against what."""
    if (found := job.compute) is None:
        return ""
    parts = [f"{rate(found.tflops * 1e12)} FLOP/s"]
    if found.mfu is not None:
        parts.append(f"MFU {percent(found.mfu)}")
    if found.of_ceiling is not None and found.ceiling_tflops is not None:
        parts.append(f"{percent(found.of_ceiling)} of the ceiling of {rate(found.ceiling_tflops * 1e12)} FLOP/s")
    return f"per tenant: {', '.join(parts)}"


def _strips(job: JobSummary, seen: Sequence[Drawn], most: int, name: str) -> Picture | None:
    tenants: dict[str, list[Drawn]] = defaultdict(list)
    for one in seen:
        if one.spans.kept.any():
            tenants[one.tenant].append(one)
    if not tenants:
        return None
    shown = [
        Strip(f"tenant {printable(who)}", [one.spans.rates for one in tenants[who]], found)
        for who, found in job.tenants.items()
        if who in tenants
    ]
    picture, thinning = strips(shown, most, name)
    kept = sum(int(one.spans.kept.sum()) for one in seen)
    n = f"n = {kept:,} observations, {len(job.rates)} launch{'es' if len(job.rates) > 1 else ''}."
    return Picture(Markup(picture), "Observations", f"{n} {thinning}".strip())


def _timeline(launch: Rows, seen: Sequence[Drawn], run_id: int, name: str) -> Picture | None:
    of_launch = [one for one in seen if one.run_id == run_id]
    found = timeline(of_launch, name)
    if found is None:
        return None
    picture, merged = found
    overlaps = [one.meeting.overlap for one in of_launch if one.meeting is not None]
    skews = [one.meeting.start_skew_ns for one in of_launch if one.meeting is not None]
    took = _seconds(*launch.columns("start_time", "end_time").row(0))
    parts = [f"overlap {at_most(min(overlaps))}", f"start skew {max(skews) / 1e6:.2f} ms", took, merged]
    return Picture(Markup(picture), f"Newest launch (R{run_id})", "; ".join(part for part in parts if part))


def _seconds(start: str, end: str) -> str:
    try:
        took = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return ""
    return f"{took:.1f} s with build and end"


LEAST_LOOKS = 3
"""Fewer are no course: the mean says as much."""
WHOSE: dict[Kind, str] = {"device": "devices", "tenant": "tenants' slices", "host": "host"}


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG element and the words below it."""

    svg: Markup
    title: str
    caption: str


def over_time_pictures(found: Sequence[Course], name: str) -> list[Picture]:
    """Return a picture per quantity; what the host has left only where no slice counts what it holds."""
    kinds = {one.kind for one in found}
    shown = [one for one in found if one.kind != "host" or kinds == {"host"}]
    return [
        _picture(kind, quantity, of, f"{name}{kind[0]}{index}")
        for index, ((kind, quantity), of) in enumerate(_grouped(shown))
        if max(int((~np.isnan(one.values)).sum()) for one in of) >= LEAST_LOOKS
    ]


def _grouped(found: Sequence[Course]) -> Iterator[tuple[tuple[Kind, str], list[Course]]]:
    order = {name: index for index, name in enumerate(NAMES)}
    ordered = sorted(found, key=lambda one: (list(WHOSE).index(one.kind), order[one.quantity]))
    for key, of in groupby(ordered, key=lambda one: (one.kind, one.quantity)):
        yield key, list(of)


def _picture(kind: Kind, quantity: str, found: Sequence[Course], name: str) -> Picture:
    quantity_name, unit, scale = NAMES[quantity]
    lines = [Trace(_label(one), one.at_s, one.values / scale) for one in found]
    most = max(lines, key=lambda one: float(np.nanmax(one.values)))
    whose = most.label if len(lines) > 1 else ""
    of = f"{len(lines)} {WHOSE[kind]}: from the lowest to the highest, and their mean" if len(lines) > FEW else ""
    every_s = float(np.median(np.diff(found[0].at_s)))
    parts = (
        of,
        f"most {np.nanmax(most.values):.4g} {unit}{f' ({whose})' if whose else ''}",
        f"a look every {every_s:.1f} s",
    )
    title = quantity_name if kind == "host" else f"{quantity_name}, {WHOSE[kind]}"
    return Picture(Markup(over_time(lines, name)), f"{title}, {unit}", "; ".join(part for part in parts if part))


def _label(one: Course) -> str:
    return one.of if one.kind == "host" else f"{one.kind} {printable(one.of)}"
