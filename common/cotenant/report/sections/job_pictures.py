"""A job's pictures: its users' observations, memory against its limit, its newest launch, its meters over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from cotenant.decoding import Number
from cotenant.report.meters import NAMES
from cotenant.report.numbers import at_most, rate
from cotenant.report.pictures.canvas import ACCENT, INK, SOFT
from cotenant.report.pictures.curves import CurveStyle, PlottedCurve, Scale, curves_picture
from cotenant.report.pictures.rows import ChartRow, Mark, rows_picture
from cotenant.report.pictures.timelines import Timeline, timelines_picture
from cotenant.report.section import Picture
from cotenant.report.summary import Estimate, JobSummary
from cotenant.results.decoded import part_of, value_at
from cotenant.results.drawn import Course, Drawn, Kind, courses_of
from cotenant.results.launches import grouped
from cotenant.results.read import again
from cotenant.results.record import Meeting
from cotenant.results.table import Rows
from cotenant.stats.tenants import common_load
from cotenant.text import joined, many, printable

Values = npt.NDArray[np.float64]

# Observations


def whole_rate(job: JobSummary) -> float:
    """Return the rate that is 100 % in a job's pictures: the median of its tenants' rates."""
    return median(estimate.rate for estimate in job.tenants.values())


def observations(
    job: JobSummary, tenants: Sequence[Drawn], ends: tuple[float, float], most: int, name: str
) -> Picture | None:
    """Return each tenant's kept observations, a line of dots for each launch, as shares of the whole.

    Observations beyond `ends` are drawn at the nearer end; at most `most` of each launch are drawn.
    """
    launches = grouped((tenant for tenant in tenants if tenant.spans.kept.any()), lambda tenant: tenant.tenant)
    if not launches:
        return None
    whole = whole_rate(job)
    rows = [
        ChartRow(
            f"user {printable(user)}",
            rate(estimate.rate),
            level=_level(estimate, whole),
            dots=[thinned(tenant.spans.rates / whole, most) for tenant in launches[user]],
        )
        for user, estimate in job.tenants.items()
        if user in launches
    ]
    picture = rows_picture(rows, name, ends, lambda share: f"{100 * share:.4g} %")
    total = sum(int(tenant.spans.kept.sum()) for tenant in tenants)
    shown = np.concatenate([values for row in rows for values in row.dots])
    beyond = np.count_nonzero((shown < ends[0]) | (shown > ends[1]))
    caption = joined(
        " ",
        f"n = {total:,} observations, {many(len(job.rates), 'launch')}.",
        _intervals(job),
        f"{len(shown):,} of {total:,} observations drawn, evenly by rank." if len(shown) < total else "",
        f"{beyond:,} beyond the axis, at its end." if beyond else "",
    )
    return Picture(picture, f"Observations, in % of the median user's rate, {rate(whole)}", caption)


def _level(estimate: Estimate, base: float) -> Mark:
    ends = None if estimate.interval is None else (estimate.interval[0] / base, estimate.interval[1] / base)
    return Mark(estimate.rate / base, ends, within=estimate.observations is not None)


def thinned(rates: Values, most: int) -> Values:
    """Return at most `most` of the rates, evenly by rank, always with the lowest and the highest."""
    if len(rates) <= most:
        return rates
    chosen: Values = np.sort(rates)[np.linspace(0, len(rates) - 1, most).round().astype(int)]
    return chosen


def _intervals(job: JobSummary) -> str:
    """Return a sentence on the intervals of a job's tenants: over launches, or one launch's observations."""
    estimates = [estimate for estimate in job.tenants.values() if estimate.interval is not None]
    if not estimates:
        return "No interval: too few launches and observations."
    if estimates[0].observations is None:
        return "Shaded: 95 % interval over launches."
    return "Dotted: 95 % interval of the median of this one launch's observations, which knows of no other launch."


# Memory


def memory(launch: Rows, name: str) -> Picture | None:
    """Return each slice's peak memory against its limit; None unless both are known for all tenants."""
    rows = []
    for _, record in again(launch):
        tenant = str(record.tenant)
        most = part_of(value_at(record.meters, "tenants", tenant, "memory_used_bytes", "max"), Number)
        limit = part_of(record.isolation.read_back.get("memory_bytes"), Number)
        if most is None or limit is None or not 0 <= most <= limit:
            return None
        most, limit = most / 2**30, limit / 2**30
        words = f"{most:.3g} of {limit:.3g}"
        rows.append(ChartRow(f"user {tenant}", words, bar=most, whole=limit, level=Mark(limit)))
    if not rows:
        return None
    drawn = rows_picture(rows, name, (0.0, max(row.whole or 0.0 for row in rows)), "{:g}".format)
    caption = "bar: the most that was in use while users were timed; line: the limit of the slice"
    return Picture(drawn, "Memory against its limit, GiB", caption)


# The newest launch

MOST_BOXES = 150
"""Most boxes of observations per tenant: more could not be told apart."""
MOST_BEFORE = 0.6
"""The longest time shown before GO, as a share of the load's time."""
KINDS = ("skipped", "kept", "alone", "held")


def newest_launch(launch: Rows, tenants: Sequence[Drawn], run_id: int, name: str) -> Picture | None:
    """Return the timeline of the tenants of one launch; None without the times of its load."""
    of_launch = [tenant for tenant in tenants if tenant.run_id == run_id]
    met = [(tenant, tenant.meeting) for tenant in of_launch if tenant.meeting is not None and len(tenant.spans.kept)]
    if not met:
        return None
    t0_ns = met[0][1].t0_ns
    stop_ns = max(meeting.load_end_ns for _, meeting in met)
    start, end = common_load([(meeting.start_ns, meeting.load_end_ns) for _, meeting in met])
    begin_ns = min(_begin_ns(meeting) for _, meeting in met)
    begin, stop, *common = ((at - t0_ns) / 1e9 for at in (begin_ns, stop_ns, start, end))
    left = max(begin, -MOST_BEFORE * stop)
    room = 0.02 * (stop - left)
    merged = max(-(-len(tenant.spans.kept) // MOST_BOXES) for tenant, _ in met)
    drawn = timelines_picture(
        [_timeline(tenant, meeting, t0_ns) for tenant, meeting in met],
        name,
        (left - room, stop + room),
        (common[0], common[1]),
        {"GO": 0.0, "STOP": stop},
        cut=begin < left,
    )
    caption = joined(
        "; ",
        f"overlap {at_most(min(meeting.overlap for _, meeting in met))}",
        f"start skew {max(meeting.start_skew_ns for _, meeting in met) / 1e6:.2f} ms",
        _seconds(*launch.columns("start_time", "end_time").row(0)),
        f"Each box holds up to {merged} observations." if merged > 1 else "",
    )
    return Picture(drawn, f"Newest launch (repetition {run_id})", caption)


def _timeline(tenant: Drawn, meeting: Meeting, t0_ns: int) -> Timeline:
    """Return one tenant's boxes; while it was held still there is no box, so that the line stays visible."""

    def seconds(moments_ns: Any) -> Any:
        return (moments_ns - t0_ns) / 1e9

    spans = tenant.spans
    starts, ends = seconds(spans.start_ns), seconds(spans.end_ns)
    warm_up, ready, load_end = map(seconds, (_begin_ns(meeting), meeting.ready_ns, meeting.load_end_ns))
    kinds = np.select([spans.held, spans.alone, spans.kept], [3, 2, 1], 0)
    merged = -(-len(kinds) // MOST_BOXES)
    number = np.arange(len(kinds))
    # A box ends before an observation of another kind.
    first = np.maximum.accumulate(np.where(np.diff(kinds, prepend=-1) != 0, number, 0))
    begins = np.flatnonzero((number - first) % merged == 0)
    drawn = np.column_stack([starts[begins], ends[np.append(begins[1:], len(kinds)) - 1]])
    boxes = {kind: [*map(tuple, drawn[kinds[begins] == at])] for at, kind in enumerate(KINDS[:3])}
    boxes |= {"warm-up": [(warm_up, ready)], "audit": [(seconds(one), seconds(other)) for one, other in spans.audits]}
    if load_end > ends[-1]:
        boxes["unmeasured"] = [(ends[-1], load_end)]
    return Timeline(f"user {printable(tenant.tenant)}", boxes, ready, starts[0], max(load_end, ends[-1]))


def _begin_ns(meeting: Meeting) -> int:
    """Return the moment at which the warm-up steps began, if nothing came between them and READY."""
    return meeting.ready_ns - sum(meeting.warm_up_ns)


def _seconds(start: str, end: str) -> str:
    try:
        took = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return ""
    return f"{took:.1f} s with build and end"


# Meters over time

LEAST_LOOKS = 3
"""Fewer samples are not drawn: their mean says as much."""
WHOSE: dict[Kind, tuple[str, str]] = {
    "device": ("device ", "devices"),
    "tenant": ("user ", "users' slices"),
    "host": ("", "host"),
}
"""The word before the name of one, and the words for all."""
STYLES = [CurveStyle(colour, dashes) for colour, dashes in ((ACCENT, "-"), (INK, "--"), (SOFT, ":"), (ACCENT, "-."))]
"""The styles of lines, distinguished in print by their dashes; for more lines, mean and range are drawn."""


def over_time(launch: Rows, name: str, limited: bool) -> Iterator[Picture]:
    """Yield a picture per quantity; the host's quantities only if devices and slices have none.

    If the slices' memory is drawn against their limits (`limited`), it is drawn over time only if it varies.
    """
    # All records of a launch have the same samples over time.
    courses = next((series for _, record in again(launch) if (series := courses_of(record))), [])
    only_host = all(course.kind == "host" for course in courses)
    for kind in WHOSE:
        for index, quantity in enumerate(NAMES):
            shown = [course for course in courses if course.kind == kind and course.quantity == quantity]
            looks = max((np.count_nonzero(~np.isnan(course.values)) for course in shown), default=0)
            if looks < LEAST_LOOKS or (kind == "host" and not only_host):
                continue
            # A course varies if it was once a fifth below its greatest value.
            moves = any(np.nanmin(course.values) < 0.8 * np.nanmax(course.values) for course in shown)
            if moves or kind != "tenant" or not limited:
                yield _courses(kind, quantity, shown, f"{name}{kind[0]}{index}")


def _courses(kind: Kind, quantity: str, courses: Sequence[Course], name: str) -> Picture:
    title, unit, scale = NAMES[quantity]
    one, whose = WHOSE[kind]
    at_s = courses[0].at_s
    lines = {f"{one}{printable(course.of)}": course.values / scale for course in courses}
    greatest = max(lines, key=lambda label: np.nanmax(lines[label]))
    most = np.nanmax(lines[greatest])
    caption = joined(
        "; ",
        f"{len(lines)} {whose}: from the lowest to the highest, and their mean" if len(lines) > len(STYLES) else "",
        f"most {most:.4g} {unit}{f' ({greatest})' if len(lines) > 1 else ''}",
        f"a look every {np.median(np.diff(at_s)):.1f} s",
    )
    across, up = Scale(ends=(0, at_s[-1]), most=6, show="{:g} s".format), Scale(ends=(0, 1.1 * most or 1), most=4)
    drawn = curves_picture(time_curves(at_s, lines), name, across, up, size=(5.2, 1.4))
    title += "" if kind == "host" else f", {whose}"
    return Picture(drawn, f"{title}, {unit}", caption)


def time_curves(at_s: Values, lines: dict[str, Values]) -> list[PlottedCurve]:
    """Return a curve per name, NaN for missing values; for more than a few curves their mean with their range."""
    if len(lines) <= len(STYLES):
        styled = zip(lines.items(), STYLES, strict=False)
        return [PlottedCurve(at_s, line, style=style, name=name) for (name, line), style in styled]
    values = np.ma.masked_invalid(np.stack([*lines.values()]))
    low, high, mean = (np.ma.filled(reduce(values, axis=0), np.nan) for reduce in (np.ma.min, np.ma.max, np.ma.mean))
    ranges = [*zip(low.tolist(), high.tolist(), strict=True)]
    return [PlottedCurve(at_s, mean, ranges, CurveStyle(INK), "band")]
