"""The picture of timelines: a row per name, with boxes of several kinds at their times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from cotenant.report.pictures.canvas import (
    ACCENT,
    BAND,
    DOTTED,
    INK,
    LINE,
    PAPER,
    SOFT,
    WASH,
    Interval,
    boxes,
    drawing,
    lines,
    rows_of_axes,
    svg,
    ticks,
)

HEIGHT = 0.5
_OBSERVED = {"edgecolor": PAPER, "linewidth": 0.5}
# No hatching: patterns make a printed page thirty times larger.
BOXES: Mapping[str, tuple[float, Mapping[str, Any]]] = {
    "warm-up": (0.6, {"facecolor": LINE, "edgecolor": SOFT, "linewidth": 0.7}),
    "skipped": (1.0, {"facecolor": ACCENT, "alpha": 0.3, **_OBSERVED}),
    "kept": (1.0, {"facecolor": ACCENT, **_OBSERVED}),
    "alone": (1.0, {"facecolor": SOFT, "alpha": 0.55, **_OBSERVED}),
    "audit": (0.7, {"facecolor": INK, "alpha": 0.75}),
    "unmeasured": (0.6, {"facecolor": "none", "edgecolor": ACCENT, "linewidth": 0.8}),
}
"""The height and the style of each kind of boxes, from bottom to top."""


class Timeline(NamedTuple):
    """A row of a picture of timelines, all times in seconds: boxes by their kind, one of BOXES, over a line.

    The line is dotted from `ready`, which has a mark, to `start`.
    """

    name: str
    boxes: Mapping[str, Sequence[Interval]]
    ready: float
    start: float
    end: float


@drawing
def timelines_picture(
    timelines: Sequence[Timeline], name: str, ends: Interval, common: Interval, moments: Mapping[str, float], cut: bool
) -> Markup:
    """Return timelines, the first on top: `common` is shaded, `moments` are named above, `cut` marks the left ends."""
    axes = rows_of_axes((timeline.name for timeline in timelines), BAND)
    axes.axvspan(*common, facecolor=WASH, linewidth=0)
    numbered = [*enumerate(timelines)]
    level = [(y, y) for y, _ in numbered]
    lines(axes, [(row.start, row.end) for row in timelines], level, color=SOFT, linewidth=0.7)
    lines(axes, [(row.ready, row.start) for row in timelines], level, color=SOFT, linewidth=1.0, linestyle=DOTTED)
    for kind, (share, style) in BOXES.items():
        placed = [(y, box) for y, row in numbered for box in row.boxes.get(kind, ())]
        half = HEIGHT * share / 2
        boxes(axes, [box for _, box in placed], [(y - half, y + half) for y, _ in placed], **style)
    lines(axes, [(row.ready, row.ready) for row in timelines], [(y - HEIGHT / 2, y + HEIGHT / 2) for y, _ in numbered])
    lines(axes, [ends] * len(numbered), [(y + 0.5, y + 0.5) for y, _ in numbered], color=LINE, linewidth=0.5)
    if cut:
        for y, _ in numbered:
            axes.annotate("◂", (0, y), (-1, 0), ("axes fraction", "data"), "offset points", va="center", color=SOFT)
    for word, at in moments.items():
        axes.axvline(at, color=INK, linewidth=0.9, linestyle=(0, (3, 2)))
        axes.annotate(
            word, (at, 1), (0, 3), ("data", "axes fraction"), "offset points", ha="center", color=SOFT, size=7
        )
    axes.set_xlim(*ends)
    ticks(axes.xaxis, 6, "{:g} s".format)
    return svg(axes, name)
