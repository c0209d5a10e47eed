"""Draws a job's tenants: a strip of observations of each, the timeline of a launch, memory against its limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from matplotlib.axes import Axes

from cotenant.report.numbers import rate
from cotenant.report.pictures.canvas import ACCENT, INK, LINE, PAPER, SOFT, WASH, bands, beside, boxes, dots, svg, ticks
from cotenant.report.summary import Estimate
from cotenant.results.drawn import Drawn
from cotenant.results.record import Meeting
from cotenant.stats.tenants import common_load
from cotenant.text import printable

Rates = npt.NDArray[np.float64]
BAND_HEIGHT = 0.72
RATES = 0.5
"""Inches beside the strips for each tenant's rate."""
HELD = 0.9
"""Inches beside the bullets for the memory held and its limit."""


def thinned(rates: Rates, most: int) -> Rates:
    """Return at most `most` of the rates, evenly over their order, always with the lowest and the highest."""
    if len(rates) <= most:
        return rates
    chosen: Rates = np.sort(rates)[np.linspace(0, len(rates) - 1, most).round().astype(int)]
    return chosen


def strips(
    tenants: Mapping[str, tuple[Sequence[Rates], Estimate]],
    whole: float,
    ends: tuple[float, float],
    most: int,
    name: str,
) -> tuple[Markup, str]:
    """Return the picture, and sentences on the observations that are not drawn, or not at their place.

    `tenants` holds, by label, the rates of each launch's kept observations, and the estimate from them. Rates are drawn
    as shares of `whole` between `ends`, those beyond at the nearer end, at most `most` of each launch.
    """
    axes = bands(list(tenants), right=RATES)
    drawn = total = beyond = 0
    for y, (launches, estimate) in enumerate(tenants.values()):
        if estimate.interval is not None:
            low, high = np.clip(np.array(estimate.interval) / whole, *ends)
            within = estimate.observations is not None
            style = {"facecolor": "none", "edgecolor": SOFT, "linewidth": 0.7, "linestyle": (0, (1, 1.2))}
            boxes(axes, [(low, high)], y, BAND_HEIGHT, **(style if within else {"facecolor": ACCENT, "alpha": 0.16}))
        half = BAND_HEIGHT * 0.42 * (1 - 1 / len(launches))
        for height, rates in zip(np.linspace(y - half, y + half, len(launches)), launches, strict=True):
            shown = thinned(rates / whole, most)
            at = np.clip(shown, *ends)
            dots(axes, at, height, 2.6, edgecolor=ACCENT, alpha=0.75, clip_on=False)
            drawn, total = drawn + len(shown), total + len(rates)
            beyond += int(np.count_nonzero(at != shown))
        _level(axes, y, np.clip(estimate.rate / whole, *ends), rate(estimate.rate))
    axes.set_xlim(*ends)
    ticks(axes.xaxis, 5, lambda share: f"{100 * share:.4g} %", steps=[1, 2, 2.5, 5, 10])
    thinning = f"{drawn:,} of {total:,} observations drawn, evenly over their order." if drawn < total else ""
    outside = f"{beyond:,} beyond the axis, at its end." if beyond else ""
    return svg(axes, name), f"{thinning} {outside}".strip()


def _level(axes: Axes, y: int, at: float, words: str) -> None:
    """Draw a line across a tenant's band, and its value beside it."""
    axes.vlines(at, y - BAND_HEIGHT / 2, y + BAND_HEIGHT / 2, color=INK, linewidth=1.5, clip_on=False)
    beside(axes, y, words)


def memory(tenants: Mapping[str, tuple[float, float]], name: str) -> Markup:
    """Return a bullet per tenant: the most memory that its slice held, against its limit, both in GiB."""
    axes = bands(list(tenants), right=HELD)
    for y, (most, limit) in enumerate(tenants.values()):
        boxes(axes, [(0, limit)], y, BAND_HEIGHT * 0.8, facecolor=LINE)
        boxes(axes, [(0, most)], y, BAND_HEIGHT * 0.4, facecolor=ACCENT)
        _level(axes, y, limit, f"{most:.3g} of {limit:.3g}")
    axes.set_xlim(0, max(limit for _, limit in tenants.values()))
    ticks(axes.xaxis, 5, "{:g}".format)
    return svg(axes, name)


BOXES = 150
"""Most boxes of observations a tenant: more could not be told apart."""
MOST_BEFORE = 0.6
"""The longest time before GO that is shown, as a share of the load's time."""
HEIGHT = 0.5
SKIPPED, KEPT, ALONE, HELD_STILL = range(4)
STYLES: Mapping[int, dict[str, Any]] = {
    SKIPPED: {"facecolor": ACCENT, "alpha": 0.3},
    KEPT: {"facecolor": ACCENT},
    ALONE: {"facecolor": SOFT, "alpha": 0.55},
}
"""The style of observations by their kind; where a tenant was paused, the line through the box stays visible."""


def timeline(launch: Sequence[Drawn], name: str) -> tuple[Markup, str] | None:
    """Return the picture of one launch, and a sentence on merged observations; None without the times of its load."""
    met = [(tenant, tenant.meeting) for tenant in launch if tenant.meeting is not None and len(tenant.spans.kept)]
    if not met:
        return None
    t0_ns = met[0][1].t0_ns

    def seconds(moments_ns: Any) -> Any:
        return (moments_ns - t0_ns) / 1e9

    common = common_load([(meeting.start_ns, meeting.load_end_ns) for _, meeting in met])
    stop = seconds(max(meeting.load_end_ns for _, meeting in met))
    begin = seconds(min(_warm_up_ns(meeting) for _, meeting in met))
    left = max(begin, -MOST_BEFORE * stop)
    axes = bands([f"user {printable(tenant.tenant)}" for tenant, _ in met])
    axes.set_xlim(left - 0.02 * (stop - left), stop + 0.02 * (stop - left))
    axes.axvspan(*map(seconds, common), facecolor=WASH, linewidth=0)
    merged = max(_band(axes, y, *each, seconds, begin < left) for y, each in enumerate(met))
    for at, word in ((0.0, "GO"), (stop, "STOP")):
        axes.axvline(at, color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
        axes.annotate(
            word, (at, 1), (0, 3), ("data", "axes fraction"), "offset points", ha="center", color=SOFT, size=7
        )
    ticks(axes.xaxis, 6, "{:g} s".format)
    return svg(axes, name), f"Each box holds up to {merged} observations." if merged > 1 else ""


def _band(axes: Axes, y: int, tenant: Drawn, meeting: Meeting, seconds: Callable[[Any], Any], cut: bool) -> int:
    """Draw one tenant; return how many observations stand in one box."""
    spans = tenant.spans
    starts, ends = seconds(spans.start_ns), seconds(spans.end_ns)
    warm_up, ready, load_end = map(seconds, (_warm_up_ns(meeting), meeting.ready_ns, meeting.load_end_ns))
    axes.plot([starts[0], max(load_end, ends[-1])], [y, y], color=SOFT, linewidth=0.7)
    axes.plot([ready, starts[0]], [y, y], color=SOFT, linewidth=1.0, linestyle=(0, (1, 1.6)))
    # No hatching: patterns make a printed page thirty times as large.
    boxes(axes, [(warm_up, ready)], y, HEIGHT * 0.6, facecolor=LINE, edgecolor=SOFT, linewidth=0.7)
    axes.plot([ready, ready], [y - HEIGHT / 2, y + HEIGHT / 2], color=INK, linewidth=1.2)
    kinds = np.select([spans.held, spans.alone, spans.kept], [HELD_STILL, ALONE, KEPT], SKIPPED)
    merged = -(-len(kinds) // BOXES)
    number = np.arange(len(kinds))
    # A box ends where the next observation is of another kind.
    first = np.maximum.accumulate(np.where(np.diff(kinds, prepend=-1) != 0, number, 0))
    begins = np.flatnonzero((number - first) % merged == 0)
    drawn = np.column_stack([starts[begins], ends[np.append(begins[1:], len(kinds)) - 1]])
    for kind, style in STYLES.items():
        boxes(axes, drawn[kinds[begins] == kind], y, HEIGHT, edgecolor=PAPER, linewidth=0.5, **style)
    audits = ((seconds(begin), seconds(end)) for begin, end in spans.audits)
    boxes(axes, audits, y, HEIGHT * 0.7, facecolor=INK, alpha=0.75)
    if load_end > ends[-1]:
        boxes(axes, [(ends[-1], load_end)], y, HEIGHT * 0.6, facecolor="none", edgecolor=ACCENT, linewidth=0.8)
    if cut:
        axes.annotate("◂", (0, y), (-1, 0), ("axes fraction", "data"), "offset points", va="center", color=SOFT)
    axes.axhline(y + 0.5, color=LINE, linewidth=0.5)
    return merged


def _warm_up_ns(meeting: Meeting) -> int:
    """Return when the warm-up steps began, if nothing else came before READY."""
    return meeting.ready_ns - sum(meeting.warm_up_ns)
