"""One card per job: its node's rate, what its devices did, its tenants' strips, its newest launch's timeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
import polars as pl
from markupsafe import Markup

from cotenant.report.meters import NAMES
from cotenant.report.numbers import at_most, interval, percent, rate
from cotenant.report.pictures.curves import FEW, over_time
from cotenant.report.pictures.tenants import strips, timeline
from cotenant.report.summary import Estimate, JobSummary, Summary
from cotenant.results.drawn import DEVICE_QUANTITIES, Course, Drawn, Kind, courses_of
from cotenant.results.read import again, drawn
from cotenant.results.table import Rows
from cotenant.text import many, printable

LEAST_POINTS = 20
LEAST_LOOKS = 3
"""Fewer are no course: the mean says as much."""
WHOSE: dict[Kind, str] = {"device": "devices", "tenant": "tenants' slices", "host": "host"}


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG element and the words beside it."""

    svg: Markup
    title: str
    caption: str


def job_cards(summary: Summary, points: int) -> list[dict[str, Any]]:
    """Return what the page shows of each job that has a rate; all together draw about `points` observations."""
    arrays = sum(len(job.members) for job in summary.jobs)
    most = max(LEAST_POINTS, points // max(1, arrays))
    return [_card(job, job.node, f"j{index}", most) for index, job in enumerate(summary.jobs) if job.node is not None]


def _card(job: JobSummary, node: Estimate, name: str, most: int) -> dict[str, Any]:
    newest = max(job.rates, key=lambda launch: launch.start_time).run_id
    tenants = drawn(job.members)
    launch = job.members.where(pl.col("run_id") == newest)
    # All records of a launch hold the same samples over time.
    courses = next((series for _, record in again(launch) if (series := courses_of(record.fields))), [])
    pictures = [_strips(job, tenants, most, f"{name}s"), _timeline(launch, tenants, newest, f"{name}t")]
    return {
        "anchor": name.replace("j", "job"),
        "label": job.label,
        "suspect": job.doubt is not None,
        "facts": _facts(job),
        "rate": rate(node.rate),
        "unit": f"{job.unit}/s" if job.unit else "items/s",
        "span": span_of(node),
        "meters": "; ".join(filter(None, (_meters(tenants), _compute(job)))),
        "pictures": [*filter(None, pictures), *_over_time(courses, name)],
    }


def span_of(estimate: Estimate) -> str:
    """Return the interval and n in words."""
    of = many(estimate.launches, "launch", "es")
    if estimate.observations is not None:
        of = f"{estimate.observations} observations of 1 launch"
    return f"95 %: {interval(*estimate.interval)}, {of}" if estimate.interval else f"{of}: too few for an interval"


def _facts(job: JobSummary) -> str:
    batch_size, precision = job.members.columns("batch_size", "precision").row(0)
    batch = f"batch {batch_size}" if batch_size is not None else ""
    return " · ".join(filter(None, (job.group, many(len(job.tenants), "tenant"), batch, precision)))


def _meters(tenants: Sequence[Drawn]) -> str:
    """Return what a device did on average while the launches that count were timed."""
    means: dict[str, list[float]] = defaultdict(list)
    for meter in (meter for tenant in tenants for meter in tenant.meters):
        means[meter.quantity].append(meter.mean)
    parts = []
    for quantity in filter(means.get, DEVICE_QUANTITIES):
        name, unit, scale = NAMES[quantity]
        parts.append(f"{name.lower()} {fmean(means[quantity]) / scale:.4g} {unit}")
    return f"per device: {', '.join(parts)}" if parts else ""


def _compute(job: JobSummary) -> str:
    """Return what a tenant computed, and against what."""
    if (compute := job.compute) is None:
        return ""
    parts = [f"{rate(compute.tflops * 1e12)} FLOP/s"]
    if compute.mfu is not None:
        parts.append(f"MFU {percent(compute.mfu)}")
    if compute.of_ceiling is not None and compute.ceiling_tflops is not None:
        parts.append(f"{percent(compute.of_ceiling)} of the ceiling of {rate(compute.ceiling_tflops * 1e12)} FLOP/s")
    return f"per tenant: {', '.join(parts)}"


def _strips(job: JobSummary, tenants: Sequence[Drawn], most: int, name: str) -> Picture | None:
    rates = defaultdict(list)
    for tenant in tenants:
        if tenant.spans.kept.any():
            rates[tenant.tenant].append(tenant.spans.rates)
    if not rates:
        return None
    bands = {f"tenant {printable(who)}": (rates[who], job.tenants[who]) for who in job.tenants if who in rates}
    picture, thinning = strips(bands, most, name)
    kept = sum(int(tenant.spans.kept.sum()) for tenant in tenants)
    n = f"n = {kept:,} observations, {many(len(job.rates), 'launch', 'es')}."
    return Picture(Markup(picture), "Observations", f"{n} {thinning}".strip())


def _timeline(launch: Rows, tenants: Sequence[Drawn], run_id: int, name: str) -> Picture | None:
    of_launch = [tenant for tenant in tenants if tenant.run_id == run_id]
    meetings = [tenant.meeting for tenant in of_launch if tenant.meeting is not None]
    if (pair := timeline(of_launch, name)) is None:
        return None
    picture, merged = pair
    overlap = f"overlap {at_most(min(meeting.overlap for meeting in meetings))}"
    skew = f"start skew {max(meeting.start_skew_ns for meeting in meetings) / 1e6:.2f} ms"
    took = _seconds(*launch.columns("start_time", "end_time").row(0))
    caption = "; ".join(filter(None, (overlap, skew, took, merged)))
    return Picture(Markup(picture), f"Newest launch (R{run_id})", caption)


def _seconds(start: str, end: str) -> str:
    try:
        took = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return ""
    return f"{took:.1f} s with build and end"


def _over_time(courses: Sequence[Course], name: str) -> list[Picture]:
    """Return a picture per quantity; what the host has left only where no slice counts what it holds."""
    kinds = {course.kind for course in courses}
    pictures = []
    for kind, (index, quantity) in product(WHOSE, enumerate(NAMES)):
        shown = [course for course in courses if (course.kind, course.quantity) == (kind, quantity)]
        looks = max((np.count_nonzero(~np.isnan(course.values)) for course in shown), default=0)
        if looks >= LEAST_LOOKS and (kind != "host" or kinds == {"host"}):
            pictures.append(_of_quantity(kind, quantity, shown, f"{name}{kind[0]}{index}"))
    return pictures


def _of_quantity(kind: Kind, quantity: str, courses: Sequence[Course], name: str) -> Picture:
    quantity_name, unit, scale = NAMES[quantity]
    lines = {_label(course): course.values / scale for course in courses}
    whose, most = max(((label, np.nanmax(values)) for label, values in lines.items()), key=lambda pair: pair[1])
    at_s = courses[0].at_s
    parts = [f"{len(lines)} {WHOSE[kind]}: from the lowest to the highest, and their mean"] if len(lines) > FEW else []
    parts += [f"most {most:.4g} {unit}{f' ({whose})' if len(lines) > 1 else ''}"]
    parts += [f"a look every {np.median(np.diff(at_s)):.1f} s"]
    title = quantity_name if kind == "host" else f"{quantity_name}, {WHOSE[kind]}"
    return Picture(Markup(over_time(at_s, lines, name)), f"{title}, {unit}", "; ".join(parts))


def _label(course: Course) -> str:
    return course.of if course.kind == "host" else f"{course.kind} {printable(course.of)}"
