"""What a job's tenants did: a strip of observations of each, and the timeline of a launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, MaxNLocator

from cotenant.report.pictures.canvas import ACCENT, INK, LINE, PAPER, SOFT, WASH, bands, boxes, dots, svg
from cotenant.report.summary import Estimate
from cotenant.results.drawn import Drawn, Spans
from cotenant.results.record import Meeting
from cotenant.stats.tenants import common_load
from cotenant.text import printable

Rates = npt.NDArray[np.float64]
BAND_HEIGHT = 0.72


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """One tenant: the rates of its kept observations, one array a launch, and what is estimated from them."""

    label: str
    launches: Sequence[Rates]
    estimate: Estimate


class _RateFormatter(EngFormatter):
    """As tables have them: `12k` and `1.2M`, but no `m` for a thousandth, which reads like a million."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:.4g}" if abs(x) < 1 else str(super().__call__(x, pos))


def thinned(rates: Rates, most: int) -> Rates:
    """Return at most so many of the rates, evenly over their order; the lowest and the highest stay."""
    if len(rates) <= most:
        return rates
    chosen: Rates = np.sort(rates)[np.linspace(0, len(rates) - 1, most).round().astype(int)]
    return chosen


def strips(tenants: Sequence[Strip], most: int, name: str) -> tuple[str, str]:
    """Return the picture, and a sentence on what is not drawn: of each launch at most `most` observations are."""
    axes = bands([strip.label for strip in tenants])
    drawn = total = 0
    for y, strip in enumerate(tenants):
        estimate, half = strip.estimate, BAND_HEIGHT / 2
        if estimate.interval is not None:
            boxes(axes, [estimate.interval], y, BAND_HEIGHT, facecolor=ACCENT, alpha=0.16, clip_on=False)
        step = BAND_HEIGHT * 0.84 / max(1, len(strip.launches))
        first = y - step * (len(strip.launches) - 1) / 2
        for number, rates in enumerate(strip.launches):
            shown = thinned(rates, most)
            heights = np.full(len(shown), first + number * step)
            dots(axes, shown, heights, 2.6, edgecolor=ACCENT, alpha=0.75, clip_on=False)
            drawn, total = drawn + len(shown), total + len(rates)
        axes.vlines(estimate.rate, y - half, y + half, color=INK, linewidth=1.5, clip_on=False)
    values = np.concatenate([rates for strip in tenants for rates in strip.launches])
    ends = [end for strip in tenants for end in strip.estimate.interval or (strip.estimate.rate,)]
    low, high = min(values.min(initial=np.inf), *ends), max(values.max(initial=0.0), *ends)
    room = 0.04 * (high - low) or 0.02 * high
    axes.set_xlim(max(0.0, low - room), high + room)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(_RateFormatter(sep=""))
    thinning = f"{drawn:,} of {total:,} observations drawn, evenly over their order." if drawn < total else ""
    return svg(axes, name), thinning


BOXES = 150
"""So many boxes of observations a tenant at most: more could not be told apart."""
MOST_BEFORE = 0.6
"""How much of what came before GO is shown, as a share of the load's time."""
HEIGHT = 0.5


def timeline(launch: Sequence[Drawn], name: str) -> tuple[str, str] | None:
    """Return the picture of one launch, and a sentence on what is not drawn; None where nobody met anybody."""
    met = [(one, one.meeting) for one in launch if one.meeting is not None and len(one.spans.kept)]
    if not met:
        return None
    t0_ns = met[0][1].t0_ns
    common = common_load([(meeting.start_ns, meeting.load_end_ns) for _, meeting in met])
    start, end = ((one - t0_ns) / 1e9 for one in common)
    stop = max(meeting.load_end_ns - t0_ns for _, meeting in met) / 1e9
    begin = min(_warm_up(meeting, t0_ns)[0] for _, meeting in met)
    left = max(begin, -MOST_BEFORE * stop)
    axes = bands([f"tenant {printable(one.tenant)}" for one, _ in met])
    axes.set_xlim(left - 0.02 * (stop - left), stop + 0.02 * (stop - left))
    axes.axvspan(start, end, facecolor=WASH, linewidth=0)
    merged = 1
    for y, (one, meeting) in enumerate(met):
        merged = max(merged, _band(axes, y, one.spans, meeting, t0_ns, begin < left))
    for at, word in ((0.0, "GO"), (stop, "STOP")):
        axes.axvline(at, color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
        axes.annotate(
            word, (at, 1), (0, 3), ("data", "axes fraction"), "offset points", ha="center", color=SOFT, size=7
        )
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    said = f"Each box holds up to {merged} observations." if merged > 1 else ""
    return svg(axes, name), said


def _band(axes: Axes, y: int, spans: Spans, meeting: Meeting, t0_ns: int, cut: bool) -> int:
    """Draw one tenant; return how many observations stand in one box."""
    warm = _warm_up(meeting, t0_ns)
    starts, ends = ((one - t0_ns) / 1e9 for one in (spans.start_ns, spans.end_ns))
    axes.plot([warm[1], starts[0]], [y, y], color=SOFT, linewidth=1.0, linestyle=(0, (1, 1.6)))
    # No hatching: patterns make a printed page thirty times as large.
    boxes(axes, [warm], y, HEIGHT * 0.6, facecolor=LINE, edgecolor=SOFT, linewidth=0.7)
    axes.plot([warm[1], warm[1]], [y - HEIGHT / 2, y + HEIGHT / 2], color=INK, linewidth=1.2)
    merged = 1
    for kept, style in ((False, {"facecolor": ACCENT, "alpha": 0.3}), (True, {"facecolor": ACCENT})):
        chosen = spans.kept == kept
        size = max(1, -(-int(chosen.sum()) // BOXES))
        merged = max(merged, size)
        edge = {"edgecolor": PAPER, "linewidth": 0.5}
        boxes(axes, _grouped(starts[chosen], ends[chosen], size), y, HEIGHT, **style, **edge)
    load_end = (meeting.load_end_ns - t0_ns) / 1e9
    if load_end > ends[-1]:
        boxes(axes, [(float(ends[-1]), load_end)], y, HEIGHT * 0.6, facecolor="none", edgecolor=ACCENT, linewidth=0.8)
    if cut:
        axes.annotate("◂", (0, y), (-1, 0), ("axes fraction", "data"), "offset points", va="center", color=SOFT)
    axes.axhline(y + 0.5, color=LINE, linewidth=0.5)
    return merged


def _warm_up(meeting: Meeting, t0_ns: int) -> tuple[float, float]:
    """Return when the warm-up steps began, if nothing but they came before READY, and when they ended."""
    return (meeting.ready_ns - sum(meeting.warm_up_ns) - t0_ns) / 1e9, (meeting.ready_ns - t0_ns) / 1e9


def _grouped(
    starts: npt.NDArray[np.float64], ends: npt.NDArray[np.float64], size: int
) -> Iterator[tuple[float, float]]:
    for first in range(0, len(starts), size):
        yield float(starts[first]), float(ends[min(first + size, len(ends)) - 1])
