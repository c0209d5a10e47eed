"""One quantity over the time of a launch: a line each of a few, the range and the mean of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from cotenant.report.pictures.canvas import ACCENT, INK, LINE, SOFT, Margins, axes_of, svg

HEIGHT = 1.3
MARGINS = Margins(left=0.62, right=0.62, top=0.12, bottom=0.3)
FEW = 4
"""So many lines can be told apart, in print too: each has its own dashes and stands beside its name."""
STYLES: tuple[dict[str, Any], ...] = (
    {"color": ACCENT, "linewidth": 1.5},
    {"color": INK, "linewidth": 1.1, "linestyle": (0, (5, 2))},
    {"color": SOFT, "linewidth": 1.4, "linestyle": (0, (1, 1.4))},
    {"color": ACCENT, "linewidth": 1.1, "linestyle": (0, (6, 2, 1, 2))},
)
LABEL = 0.15
"""Of the axes' height, what a line's name takes."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Values at seconds after t0; NaN where there is none."""

    label: str
    at_s: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]


def over_time(lines: Sequence[Line], name: str) -> str:
    """Return the picture; of more than a few lines, which have to be of the same moments, their range and mean."""
    axes = axes_of(HEIGHT, margins=MARGINS)
    axes.set_xlim(0, max(one.at_s[-1] for one in lines))
    axes.set_ylim(0, 1.1 * max(float(np.nanmax(one.values)) for one in lines) or 1)
    if len(lines) > FEW:
        _range(axes, lines)
    else:
        for one, style in zip(lines, STYLES, strict=False):
            axes.plot(one.at_s, one.values, **style)
        _names(axes, lines)
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    return svg(axes, name)


def _range(axes: Axes, lines: Sequence[Line]) -> None:
    values = np.stack([one.values for one in lines])
    seen = ~np.isnan(values).all(axis=0)
    at_s, values = lines[0].at_s[seen], values[:, seen]
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    corners = (np.concatenate([at_s, at_s[::-1]]), np.concatenate([low, high[::-1]]))
    axes.fill(*corners, facecolor=ACCENT, alpha=0.28, linewidth=0)
    axes.plot(at_s, np.nanmean(values, axis=0), color=INK, linewidth=1.3)


def _names(axes: Axes, lines: Sequence[Line]) -> None:
    """Write each name at the end of its line, and one above the other where lines end side by side."""
    top, room = axes.get_ylim()[1], 1.0
    ends = sorted((float(one.values[~np.isnan(one.values)][-1]) / top, one.label) for one in lines)
    places: list[float] = []
    for end, _ in ends:
        places.append(max(end, places[-1] + LABEL if places else 0.0))
    for place, (_, label) in zip(reversed(places), reversed(ends), strict=True):
        at = min(place, room)
        axes.annotate(label, (1, at), (4, 0), "axes fraction", "offset points", va="center", color=INK, size=7)
        room = at - LABEL
