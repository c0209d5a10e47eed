"""The picture of rows, one per name: marks with intervals, bars from zero, and dots for single observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from matplotlib.axes import Axes

from cotenant.report.pictures.canvas import (
    ACCENT,
    DOTTED,
    INK,
    LINE,
    PAPER,
    SOFT,
    WASH,
    WIDTH,
    Interval,
    boxes,
    dots,
    drawing,
    lines,
    rows_of_axes,
    svg,
    ticks,
    whole_percent,
)
from cotenant.stats.kept import Kept

MARKS = "osD^"
"""Marks of a row's first values, which differ in print, too; further values share the last."""
ROUND = (1, 2, 2.5, 5, 10)
BAR, OF_WHOLE, OBSERVED = 0.3, 0.6, 0.72
"""Shares of a row's height that a bar, its whole, and dots take."""


class Mark(NamedTuple):
    """A value with its 95 % interval, dotted if it is `within` a launch; filled if it is `sure`."""

    value: float
    interval: Interval | None = None
    within: bool = False
    sure: bool = True

    @property
    def ends(self) -> tuple[float, ...]:
        """The value and the ends of its interval."""
        return self.value, *(self.interval or ())


def mark_of(kept: Kept, sure: bool = True) -> Mark:
    """Return the mark of a kept share."""
    return Mark(kept.value, kept.interval, kept.within, sure)


class ChartRow(NamedTuple):
    """A row by its name, with words beside it, drawn in this order:

    a `bar` from zero, a part of a `whole`; a `level`, a line across the row in the box of its interval; `dots`, a line
    for each launch; `marks`, each with its own shape.
    """

    name: str
    words: str = ""
    marks: Sequence[Mark] = ()
    bar: float | None = None
    whole: float | None = None
    dots: Sequence[npt.NDArray[np.float64]] = ()
    level: Mark | None = None


@drawing
def rows_picture(
    rows: Sequence[ChartRow],
    name: str,
    ends: Interval,
    show: Any = whole_percent,
    *,
    height: float = 0.34,
    width: float = WIDTH,
    at: Sequence[float] = (),
    band: Interval | None = None,
) -> Markup:
    """Return the rows, the first on top, on an axis with these ends; values beyond are drawn at the ends.

    `height` (of a row) and `width` are in inches; lines mark the values `at`, and a `band` of values is shaded.
    """
    axes = rows_of_axes((row.name for row in rows), height, width, [row.words for row in rows])
    if band is not None:
        axes.axvspan(*band, facecolor=WASH, linewidth=0)
    for y, row in enumerate(rows):
        _bar(axes, y, row)
        if row.level is not None:
            _level(axes, y, row.level, ends)
        if row.marks and row.bar is None:
            axes.axhline(y, color=LINE, linewidth=0.4)
        half = OBSERVED * 0.42 * (1 - 1 / max(1, len(row.dots)))
        for line, values in zip(np.linspace(y - half, y + half, len(row.dots)), row.dots, strict=True):
            dots(axes, np.clip(values, *ends), line, 2.6, edgecolor=ACCENT, alpha=0.75, clip_on=False)
        _marks(axes, y, row.marks, height, ends)
    for value in at:
        axes.axvline(value, color=INK, linewidth=0.9)
    axes.set_xlim(*ends)
    ticks(axes.xaxis, min(7, max(3, round(width))), show, steps=ROUND)
    return svg(axes, name)


def _bar(axes: Axes, y: float, row: ChartRow) -> None:
    for length, share, style in (
        (row.whole, OF_WHOLE, {"facecolor": LINE}),
        (row.bar, BAR if row.whole else OF_WHOLE, {"facecolor": ACCENT, "alpha": None if row.whole else 0.55}),
    ):
        if length is not None:
            boxes(axes, [(0.0, length)], [(y - share / 2, y + share / 2)], **style)


def _level(axes: Axes, y: float, level: Mark, ends: Interval) -> None:
    across = (y - OBSERVED / 2, y + OBSERVED / 2)
    if level.interval is not None:
        dotted = {"facecolor": "none", "edgecolor": SOFT, "linewidth": 0.7, "linestyle": DOTTED}
        low, high = np.clip(level.interval, *ends)
        boxes(axes, [(low, high)], [across], **(dotted if level.within else {"facecolor": ACCENT, "alpha": 0.16}))
    at = float(np.clip(level.value, *ends))
    lines(axes, [(at, at)], [across], linewidth=1.5, clip_on=False)


def _marks(axes: Axes, y: float, marks: Sequence[Mark], height: float, ends: Interval) -> None:
    """Draw the marks of a row below each other, each over the line of its interval."""
    half = min(0.5, height * (len(marks) - 1)) / 2
    for at, (mark, line) in enumerate(zip(marks, np.linspace(y - half, y + half, len(marks)), strict=True)):
        if mark.interval is not None:
            dotted = {"color": SOFT, "linewidth": 0.7, "linestyle": DOTTED} if mark.within else {}
            low, high = np.clip(mark.interval, *ends)
            lines(axes, [(low, high)], [(line, line)], **dotted)
        shape, fill = MARKS[min(at, len(MARKS) - 1)], ACCENT if mark.sure else PAPER
        style: dict[str, Any] = {"color": fill, "markeredgecolor": ACCENT, "markeredgewidth": 0.9, "markersize": 4.4}
        axes.plot(np.clip([mark.value], *ends), [line], shape, clip_on=False, **style)
