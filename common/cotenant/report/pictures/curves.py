"""The picture of curves: y over x with intervals as bands or bars, over devices, launches, time, users or pressure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.scale import LogScale

from cotenant.report.pictures.canvas import (
    ACCENT,
    DOTTED,
    INK,
    LEFT,
    SOFT,
    WIDTH,
    Interval,
    axes_of,
    boxes,
    drawing,
    lines,
    svg,
    ticks,
)
from cotenant.stats.kept import Kept

DASHED = (0, (4, 2.5))


class CurveStyle(NamedTuple):
    """The colour and dashes ("" for none) of a line, and the mark of its points with its fill."""

    colour: str = ACCENT
    dashes: Any = "-"
    mark: str = ""
    fill: str = ACCENT
    width: float = 1.3


class PlottedCurve(NamedTuple):
    """Points of one curve, NaN for a missing y, each with an interval or None.

    Intervals are `bars`; a `band`, or its `edges` alone; or `boxes`, in which each value is a line. The `name` is
    beside the picture, and `words`, one per point, are beside the points.
    """

    x: npt.ArrayLike
    y: npt.ArrayLike
    intervals: Sequence[Interval | None] = ()
    style: CurveStyle = CurveStyle()
    spread: Literal["bars", "band", "edges", "boxes"] = "bars"
    name: str = ""
    words: Sequence[str] = ()


def kept_curve(x: Sequence[float], kept: Sequence[Kept], style: CurveStyle, **more: Any) -> PlottedCurve:
    """Return the curve of kept shares, or similar measures, with their intervals."""
    return PlottedCurve(x, [share.value for share in kept], [share.interval for share in kept], style, **more)


class Scale(NamedTuple):
    """An axis: its label, its ends (by default the data's), its approximate number of ticks, and their text.

    With `doubling`, the axis is to base 2, with ticks at these values only; with `whole`, ticks are at whole numbers.
    """

    label: str = ""
    ends: tuple[float | None, float | None] = (None, None)
    most: int = 5
    show: Callable[[float], str] | None = None
    doubling: Sequence[int] = ()
    whole: bool = False


@drawing
def curves_picture(
    curves: Sequence[PlottedCurve],
    name: str,
    x: Scale,
    y: Scale,
    *,
    size: tuple[float, float] = (WIDTH, 1.75),
    level: float | None = None,
) -> Markup:
    """Return the curves; `size` is width and height in inches, and there is a line at the `level` of y."""
    width, height = size
    axes = axes_of(
        height,
        right=1.0 if any(curve.name for curve in curves) else 0.12,
        bottom=0.42 if x.label else 0.3,
        width=width,
        left=(0.46 if width < WIDTH else LEFT) + (0.14 if y.label else 0),
    )
    if level is not None:
        axes.axhline(level, color=INK, linewidth=0.7)
    for curve in curves:
        _curve(axes, curve)
    _scale(axes, "x", x)
    _scale(axes, "y", y)
    if any(curve.name for curve in curves):
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1.1), frameon=False, fontsize=7, labelcolor=INK)
    return svg(axes, name)


def _scale(axes: Axes, which: Literal["x", "y"], scale: Scale) -> None:
    axis: Axis = getattr(axes, f"{which}axis")
    if scale.doubling:
        axes.set(**{f"{which}scale": LogScale(axis, base=2)})
        axis.minorticks_off()
        axis.set_ticks(scale.doubling, [str(count) for count in scale.doubling])
    else:
        ticks(axis, scale.most, scale.show, integer=scale.whole, min_n_ticks=1)
    axes.set(**{f"{which}label": scale.label, f"{which}lim": scale.ends})


def _curve(axes: Axes, curve: PlottedCurve) -> None:
    style, x = curve.style, np.asarray(curve.x, float)
    intervals = [(float(at), ends) for at, ends in zip(x, curve.intervals, strict=False) if ends is not None]
    spans = [ends for _, ends in intervals]
    if curve.spread == "bars":
        lines(axes, [(at, at) for at, _ in intervals], spans)
    elif curve.spread == "boxes":
        wide = [(at - 0.4, at + 0.4) for at in x]
        boxes(axes, wide, spans, facecolor=ACCENT, alpha=0.28)
        lines(axes, wide, [(value, value) for value in np.asarray(curve.y, float)], linewidth=1.3)
        return
    else:
        low, high = np.array([(np.nan, np.nan) if ends is None else ends for ends in curve.intervals]).T
        if curve.spread == "band":
            axes.fill_between(x, low, high, facecolor=ACCENT, alpha=0.26, linewidth=0)
        else:
            for edge in (low, high):
                axes.plot(x, edge, color=SOFT, linewidth=0.8, linestyle=DOTTED)
    line: dict[str, Any] = {"color": style.colour, "linestyle": style.dashes, "linewidth": style.width}
    marks: dict[str, Any] = {
        "marker": style.mark,
        "markersize": 4.6,
        "markerfacecolor": style.fill,
        "markeredgecolor": style.colour,
    }
    axes.plot(x, curve.y, label=curve.name or None, clip_on=not style.mark, **line, **marks)
    for at, value, words in zip(x, np.asarray(curve.y, float), curve.words, strict=False):
        axes.annotate(words, (at, value), (5, -11), textcoords="offset points", color=INK, size=7)
