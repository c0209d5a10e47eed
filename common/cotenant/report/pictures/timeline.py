"""The timeline of a launch: who warmed up, waited, ran and stopped when, in seconds from GO."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from cotenant.report.pictures.canvas import ACCENT, INK, LINE, PAPER, SOFT, WASH, bands, boxes, svg
from cotenant.results.drawn import Drawn, Spans
from cotenant.results.record import Meeting
from cotenant.stats.tenants import common_load
from cotenant.text import printable

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
