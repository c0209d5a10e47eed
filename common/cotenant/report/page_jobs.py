"""One card per job: its node's rate, its devices' meters, its tenants' strips, its newest launch's timeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from statistics import fmean, median
from typing import Any

import numpy as np

from cotenant.decoding import Number
from cotenant.frames import pl
from cotenant.report.job_cells import shared, tenant_rates
from cotenant.report.meters import NAMES
from cotenant.report.numbers import at_most, interval, percent, rate
from cotenant.report.pictures.canvas import shares_axis
from cotenant.report.pictures.curves import FEW, over_time
from cotenant.report.pictures.tenants import memory, strips, timeline
from cotenant.report.problems import rule_anchors, rules_of
from cotenant.report.renderers import Picture
from cotenant.report.summary import Estimate, JobSummary, Summary
from cotenant.results.decoded import part_of, value_at
from cotenant.results.drawn import DEVICE_QUANTITIES, Course, Drawn, Kind, courses_of
from cotenant.results.launches import grouped
from cotenant.results.read import again, drawn
from cotenant.results.table import Rows
from cotenant.text import joined, many, printable

POINTS = 8000
"""How many observations a page draws at most: each takes some 30 bytes."""
LEAST_POINTS = 20
LEAST_LOOKS = 3
"""Fewer samples are not drawn: their mean says as much."""
WHOSE: dict[Kind, tuple[str, str]] = {
    "device": ("device ", "devices"),
    "tenant": ("user ", "users' slices"),
    "host": ("", "host"),
}
"""The word before one's name, and the words for all of them."""


def job_cards(summary: Summary) -> Iterator[dict[str, Any]]:
    """Yield the page's part on each job that has a rate; together they draw about POINTS observations."""
    most = max(LEAST_POINTS, POINTS // max(1, sum(len(job.members) for job in summary.jobs)))
    anchors = rule_anchors(summary.findings)
    rated = [(index, job, job.node) for index, job in enumerate(summary.jobs) if job.node is not None]
    ends = shares_axis(end for _, job, _ in rated for end in _extremes(job))
    several = len({job.host for _, job, _ in rated}) > 1
    for index, job, node in rated:
        newest, tenants = max(job.rates, key=lambda launch: launch.start_time).run_id, drawn(job.members)
        launch = job.members.where(pl.col("run_id") == newest)
        limits = _memory(launch, f"j{index}m")
        shown = (
            _strips(job, tenants, ends, most, f"j{index}s"),
            _timeline(launch, tenants, newest, f"j{index}t"),
            limits,
        )
        yield {
            "anchor": f"job{index}",
            "label": f"{job.label} on {job.host}" if several else job.label,
            "suspect": job.doubt is not None,
            "facts": _facts(job),
            "rates": tenant_rates(job),
            "together": rate(node.rate) if len(job.tenants) > 1 else "",
            "unit": f"{job.unit or 'items'}/s",
            "findings": [(rule.replace("_", " "), anchors[rule]) for rule in rules_of(job.members) if rule in anchors],
            "span": _span(node),
            "meters": joined("; ", _meters(tenants), _compute(job)),
            "pictures": [*filter(None, shown), *_over_time(launch, f"j{index}", limits is not None)],
        }


def _whole(job: JobSummary) -> float:
    """Return the rate that is 100 % in the pictures of a job: the median of its tenants' rates."""
    return median(estimate.rate for estimate in job.tenants.values())


def _extremes(job: JobSummary) -> list[float]:
    """Return the lowest and the highest rate of any observation, as shares of the whole."""
    rates = job.members.columns(pl.col("rate_min_items_s").min(), pl.col("rate_max_items_s").max()).row(0)
    return [end / _whole(job) for end in rates if end is not None]


def _span(estimate: Estimate) -> str:
    """Return the interval and n in words."""
    of = many(estimate.launches, "launch")
    if estimate.launches == 1 and estimate.interval is None:
        return "measured once"
    if estimate.observations is not None:
        of = f"{many(estimate.observations, 'observation')} of 1 launch"
    return f"95 %: {interval(*estimate.interval)}, {of}" if estimate.interval else f"{of}: too few for an interval"


def _facts(job: JobSummary) -> str:
    batch_size, precision = job.members.columns("batch_size", "precision").row(0)
    batch = f"batch {batch_size}" if batch_size is not None else ""
    fairness = f"fairness {job.evenness.jain:.4f}" if job.evenness is not None else ""
    return joined(" · ", job.group, many(len(job.tenants), "user"), shared(job), batch, precision, fairness)


def _meters(tenants: Sequence[Drawn]) -> str:
    """Return the means of a device's meters while the launches that count were timed."""
    means = grouped((meter for tenant in tenants for meter in tenant.meters), lambda meter: meter.quantity)
    parts = []
    for quantity in filter(means.get, DEVICE_QUANTITIES):
        name, unit, scale = NAMES[quantity]
        parts.append(f"{name.lower()} {fmean(meter.mean for meter in means[quantity]) / scale:.4g} {unit}")
    return f"per device: {', '.join(parts)}" if parts else ""


def _compute(job: JobSummary) -> str:
    """Return a tenant's FLOP/s in words, as shares of the datasheet's peak and of the measured ceiling."""
    if (compute := job.compute) is None:
        return ""
    parts = [f"{rate(compute.tflops * 1e12)} FLOP/s"]
    if compute.mfu is not None:
        parts.append(f"MFU {percent(compute.mfu)}")
    if compute.of_ceiling is not None and compute.ceiling_tflops is not None:
        parts.append(f"{percent(compute.of_ceiling)} of the ceiling of {rate(compute.ceiling_tflops * 1e12)} FLOP/s")
    return f"per user: {', '.join(parts)}"


def _strips(
    job: JobSummary, tenants: Sequence[Drawn], ends: tuple[float, float], most: int, name: str
) -> Picture | None:
    launches = grouped((tenant for tenant in tenants if tenant.spans.kept.any()), lambda tenant: tenant.tenant)
    if not launches:
        return None
    bands = {
        f"user {printable(who)}": ([tenant.spans.rates for tenant in launches[who]], estimate)
        for who, estimate in job.tenants.items()
        if who in launches
    }
    picture, notes = strips(bands, _whole(job), ends, most, name)
    kept_count = sum(int(tenant.spans.kept.sum()) for tenant in tenants)
    n = f"n = {kept_count:,} observations, {many(len(job.rates), 'launch')}."
    title = f"Observations, in % of the median user's rate, {rate(_whole(job))}"
    return Picture(picture, title, joined(" ", n, _intervals(job), notes))


def _intervals(job: JobSummary) -> str:
    """Say whether the intervals of a job's tenants are over launches, rounds or observations."""
    known = [estimate for estimate in job.tenants.values() if estimate.interval is not None]
    if not known:
        return "No interval: too few launches and observations."
    if known[0].observations is None:
        return "Shaded: 95 % interval over launches."
    return "Dotted: 95 % interval of the median of this one launch's observations, which knows of no other launch."


def _memory(launch: Rows, name: str) -> Picture | None:
    """Return each slice's peak memory against its limit; None unless both are known for all tenants."""
    held: dict[str, tuple[float, float]] = {}
    for _, record in again(launch):
        tenant = str(record.tenant)
        most = part_of(value_at(record.meters, "tenants", tenant, "memory_used_bytes", "max"), Number)
        limit = part_of(record.isolation.read_back.get("memory_bytes"), Number)
        if most is None or limit is None or not 0 <= most <= limit:
            return None
        held[f"user {tenant}"] = (most / 2**30, limit / 2**30)
    if not held:
        return None
    caption = "bar: the most that was in use while users were timed; line: the limit of the slice"
    return Picture(memory(held, name), "Memory against its limit, GiB", caption)


def _timeline(launch: Rows, tenants: Sequence[Drawn], run_id: int, name: str) -> Picture | None:
    of_launch = [tenant for tenant in tenants if tenant.run_id == run_id]
    if (pair := timeline(of_launch, name)) is None:
        return None
    picture, merged = pair
    meetings = [tenant.meeting for tenant in of_launch if tenant.meeting is not None]
    overlap = f"overlap {at_most(min(meeting.overlap for meeting in meetings))}"
    skew = f"start skew {max(meeting.start_skew_ns for meeting in meetings) / 1e6:.2f} ms"
    took = _seconds(*launch.columns("start_time", "end_time").row(0))
    return Picture(picture, f"Newest launch (repetition {run_id})", joined("; ", overlap, skew, took, merged))


def _seconds(start: str, end: str) -> str:
    try:
        took = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return ""
    return f"{took:.1f} s with build and end"


def _over_time(launch: Rows, name: str, limited: bool) -> Iterator[Picture]:
    """Yield a picture per quantity; the host's free memory only where no slice counts its own.

    If slices' memory is drawn against limits already, it is drawn over time only if it moves.
    """
    # All records of a launch hold the same samples over time.
    courses = next((series for _, record in again(launch) if (series := courses_of(record))), [])
    only_host = all(course.kind == "host" for course in courses)
    for kind in WHOSE:
        for index, quantity in enumerate(NAMES):
            shown = [course for course in courses if course.kind == kind and course.quantity == quantity]
            looks = max((np.count_nonzero(~np.isnan(course.values)) for course in shown), default=0)
            if looks < LEAST_LOOKS or (kind == "host" and not only_host):
                continue
            # A course moves that was at some time lower by a fifth than its greatest value.
            moves = any(np.nanmin(course.values) < 0.8 * np.nanmax(course.values) for course in shown)
            if moves or kind != "tenant" or not limited:
                yield _courses(kind, quantity, shown, f"{name}{kind[0]}{index}")


def _courses(kind: Kind, quantity: str, courses: Sequence[Course], name: str) -> Picture:
    title, unit, scale = NAMES[quantity]
    one, whose = WHOSE[kind]
    at_s = courses[0].at_s
    lines = {f"{one}{printable(course.of)}": course.values / scale for course in courses}
    greatest = max(lines, key=lambda label: np.nanmax(lines[label]))
    caption = joined(
        "; ",
        f"{len(lines)} {whose}: from the lowest to the highest, and their mean" if len(lines) > FEW else "",
        f"most {np.nanmax(lines[greatest]):.4g} {unit}{f' ({greatest})' if len(lines) > 1 else ''}",
        f"a look every {np.median(np.diff(at_s)):.1f} s",
    )
    title += "" if kind == "host" else f", {whose}"
    return Picture(over_time(at_s, lines, name), f"{title}, {unit}", caption)
