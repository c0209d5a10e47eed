"""Curves: speed-up over devices, one quantity over launches or over a launch's time, what is kept beside neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from cotenant.report.interference import Block
from cotenant.report.pictures.canvas import ACCENT, INK, LINE, PAPER, SOFT, axes_of, bands, boxes, svg
from cotenant.report.scaling import Point
from cotenant.results.drawn import Meter
from cotenant.stats.interference import Ratio
from cotenant.text import printable


def scaling(points: Sequence[Point], name: str) -> str | None:
    """Return speed-up over devices beside the ideal line; None where there is no one-device cell to be compared to."""
    known = [point for point in points if point.speedup is not None]
    if len(known) < 2:
        return None
    axes = axes_of(2.6, right=0.3, bottom=0.42)
    devices = [point.total_devices for point in known]
    axes.plot(devices, devices, color=SOFT, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate("ideal", (devices[-1], devices[-1]), (-4, 0), textcoords="offset points", ha="right", size=7)
    axes.plot(devices, [point.speedup or 0.0 for point in known], color=ACCENT, linewidth=1.6, marker="o", markersize=5)
    for point in known:
        if point.speedup_interval is not None:
            axes.plot([point.total_devices] * 2, point.speedup_interval, color=INK, linewidth=1.1)
        label = f"{point.speedup:.2f}x  {100 * (point.speedup or 0) / point.total_devices:.0f} %"
        axes.annotate(
            label, (point.total_devices, point.speedup or 0), (5, -11), textcoords="offset points", color=INK, size=7
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_locator(NullLocator())
    axes.set_xticks(devices)
    axes.set_yticks(devices)
    axes.set_xlim(devices[0] / 1.15, devices[-1] * 1.45)
    axes.set_xlabel("devices")
    axes.set_ylabel("speed-up")
    return svg(axes, name)


def over_launches(launches: Sequence[Sequence[Meter]], name: str) -> str:
    """Return one quantity over launches, in the order they ran: boxes from the lowest to the highest sample of any
    device, and lines at the mean over devices."""
    axes = axes_of(1.6)
    highest = 0.0
    for number, meters in enumerate(launches, 1):
        start, end = number - 0.4, number + 0.4
        low, high = min(meter.min for meter in meters), max(meter.max for meter in meters)
        boxes(axes, [(start, end)], (low + high) / 2, high - low, facecolor=ACCENT, alpha=0.28)
        mean = fmean(meter.mean for meter in meters)
        axes.plot([start, end], [mean, mean], color=INK, linewidth=1.3, solid_capstyle="butt")
        highest = max(highest, high)
    axes.set_xlim(0.4, len(launches) + 0.6)
    axes.set_ylim(0, 1.08 * highest or 1)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    return svg(axes, name)


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
class Trace:
    """Values at seconds after t0; NaN where there is none."""

    label: str
    at_s: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]


def over_time(lines: Sequence[Trace], name: str) -> str:
    """Return the picture; of more than a few lines, which have to be of the same moments, their range and mean."""
    axes = axes_of(1.4, right=0.62)
    axes.set_xlim(0, max(one.at_s[-1] for one in lines))
    axes.set_ylim(0, 1.1 * max(float(np.nanmax(one.values)) for one in lines) or 1)
    if len(lines) > FEW:
        _range(axes, lines)
    else:
        for one, style in zip(lines, STYLES, strict=False):
            axes.plot(one.at_s, one.values, **style)
        _names(axes, lines)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    return svg(axes, name)


def _range(axes: Axes, lines: Sequence[Trace]) -> None:
    values = np.stack([one.values for one in lines])
    seen = ~np.isnan(values).all(axis=0)
    at_s, values = lines[0].at_s[seen], values[:, seen]
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    corners = (np.concatenate([at_s, at_s[::-1]]), np.concatenate([low, high[::-1]]))
    axes.fill(*corners, facecolor=ACCENT, alpha=0.28, linewidth=0)
    axes.plot(at_s, np.nanmean(values, axis=0), color=INK, linewidth=1.3)


def _names(axes: Axes, lines: Sequence[Trace]) -> None:
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


LEAST_LINES = 2
NAME_LENGTH = 14


def kept(block: Block, name: str) -> str | None:
    """Return a band per job, a line at 1; None for fewer than two jobs, which the table shows as well."""
    lines = [line for line in block.lines if line.tenant is None and (line.kept or line.unsliced_kept)]
    if len(lines) < LEAST_LINES:
        return None
    axes = bands([printable(line.job)[:NAME_LENGTH] for line in lines])
    axes.axvline(1, color=LINE, linewidth=1.4)
    for at, line in enumerate(lines):
        _mark(axes, line.kept, at - 0.12, ACCENT)
        _mark(axes, line.unsliced_kept, at + 0.12, PAPER)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    return svg(axes, name)


def _mark(axes: Axes, found: Ratio | None, y: float, fill: str) -> None:
    if found is None:
        return
    if found.interval is not None:
        axes.plot(found.interval, [y, y], color=INK, linewidth=1.1)
    axes.plot([found.ratio], [y], marker="o", markersize=5, color=fill, markeredgecolor=ACCENT, markeredgewidth=1.1)
