"""Curves: speed-up over devices, a quantity over launches or a launch's time, kept shares, nodes over a job's rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from matplotlib.axes import Axes

from cotenant.report.interference import InterferenceBlock
from cotenant.report.pictures.canvas import (
    ACCENT,
    INK,
    LINE,
    PAPER,
    SOFT,
    axes_of,
    bands,
    dots,
    doubling,
    interval,
    svg,
    ticks,
    whole_percent,
)
from cotenant.report.scaling import ScalingPoint
from cotenant.results.drawn import Meter
from cotenant.stats.kept import Kept
from cotenant.text import printable

Values = npt.NDArray[np.float64]


def scaling(points: Sequence[ScalingPoint], name: str) -> Markup | None:
    """Return speed-up over devices beside the ideal line; None where there is no one-device cell to be compared to."""
    known = [(point.total_devices, point.speedup) for point in points if point.speedup is not None]
    if len(known) < 2:
        return None
    axes = axes_of(2.6, right=0.3, bottom=0.42)
    devices = [count for count, _ in known]
    axes.plot(devices, devices, color=SOFT, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate("ideal", (devices[-1], devices[-1]), (-4, 0), textcoords="offset points", ha="right", size=7)
    axes.plot(devices, [of.value for _, of in known], color=ACCENT, linewidth=1.6, marker="o", markersize=5)
    for count, of in known:
        if of.interval is not None:
            axes.plot([count] * 2, of.interval, color=INK, linewidth=1.1)
        label = f"{of.value:.2f}x  {100 * of.value / count:.0f} %"
        axes.annotate(label, (count, of.value), (5, -11), textcoords="offset points", color=INK, size=7)
    axes.set_yscale("log", base=2)
    axes.set_yticks(devices, [str(count) for count in devices])
    doubling(axes, devices)
    axes.set_xlim(devices[0] / 1.15, devices[-1] * 1.45)
    axes.set_xlabel("devices")
    axes.set_ylabel("speed-up")
    return svg(axes, name)


def over_launches(launches: Sequence[Sequence[Meter]], name: str) -> Markup:
    """Return one quantity over launches, in the order they ran: boxes from the lowest to the highest sample of any
    device, and lines at the mean over devices."""
    axes = axes_of(1.6)
    numbers = np.arange(1, len(launches) + 1)
    low = np.array([min(meter.min for meter in meters) for meters in launches])
    high = np.array([max(meter.max for meter in meters) for meters in launches])
    means = [fmean(meter.mean for meter in meters) for meters in launches]
    axes.bar(numbers, high - low, bottom=low, facecolor=ACCENT, alpha=0.28)
    axes.hlines(means, numbers - 0.4, numbers + 0.4, color=INK, linewidth=1.3)
    axes.set_xlim(0.4, len(launches) + 0.6)
    axes.set_ylim(0, 1.08 * high.max() or 1)
    ticks(axes.yaxis, 4)
    ticks(axes.xaxis, 8, integer=True)
    return svg(axes, name)


COLOURS, DASHES = (ACCENT, INK, SOFT, ACCENT), ("-", "--", ":", "-.")
FEW = len(DASHES)
"""Most lines that can be told apart in print, each by its own dashes."""


def over_time(at_s: Values, lines: Mapping[str, Values], name: str) -> Markup:
    """Return a line per name, NaN where a value is missing; for more than a few lines their range and mean."""
    axes = axes_of(1.4, right=1.0)
    values = np.ma.masked_invalid(np.stack(list(lines.values())))
    axes.set_xlim(0, at_s[-1])
    axes.set_ylim(0, 1.1 * values.max() or 1)
    if len(lines) > FEW:
        axes.fill_between(at_s, values.min(axis=0), values.max(axis=0), facecolor=ACCENT, alpha=0.28, linewidth=0)
        axes.plot(at_s, values.mean(axis=0), color=INK, linewidth=1.3)
    else:
        axes.set_prop_cycle(color=COLOURS, linestyle=DASHES)
        for label, line in zip(lines, values, strict=True):
            axes.plot(at_s, line, label=label, linewidth=1.3)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1.1), frameon=False, fontsize=7, labelcolor=INK)
    ticks(axes.yaxis, 4)
    ticks(axes.xaxis, 6, "{:g} s".format)
    return svg(axes, name)


NAME_LENGTH = 14


def kept(block: InterferenceBlock, name: str) -> Markup | None:
    """Return a band per job, a line at 1; None for fewer than two jobs, which the table shows as well.

    None, too, where no job ran without slices: the chart on top of the page shows the shares kept in them.
    """
    lines = [line for line in block.lines if line.tenant is None and (line.kept or line.unsliced_kept)]
    if len(lines) < 2 or not any(line.unsliced_kept for line in lines):
        return None
    axes = bands([printable(line.job)[:NAME_LENGTH] for line in lines])
    axes.axvline(1, color=LINE, linewidth=1.4)
    for at, line in enumerate(lines):
        _mark(axes, line.kept, at - 0.12, ACCENT)
        _mark(axes, line.unsliced_kept, at + 0.12, PAPER)
    axes.set_xlim(left=0)
    ticks(axes.xaxis, 6)
    return svg(axes, name)


def _mark(axes: Axes, share: Kept | None, y: float, fill: str) -> None:
    if share is None:
        return
    if share.interval is not None:
        interval(axes, share.interval, y)
    axes.plot([share.value], [y], marker="o", markersize=5, color=fill, markeredgecolor=ACCENT, markeredgewidth=1.1)


POINTS = 400
"""Most points of a curve over nodes: with more it looks the same."""
NAMED, LONGEST = 4, 18
"""The outliers that are named at most, and the letters of a name."""


def distribution(
    ratios: npt.NDArray[np.float64], low: npt.NDArray[np.bool_], names: Sequence[str], name: str
) -> Markup:
    """Return the share of nodes (y) at or below each rate over the median (x); the lowest outliers have their names.

    `ratios`, `low` (which are outliers) and `names` are of the same nodes; a node without a rate has none, and one has.
    """
    known = np.flatnonzero(np.isfinite(ratios))
    order = known[np.argsort(ratios[known])]
    percent, shares = 100 * ratios[order], np.arange(1, len(order) + 1) / len(order)
    axes = axes_of(1.7, right=0.25, bottom=0.36)
    axes.axvline(100, color=LINE, linewidth=1.2)
    drawn = np.unique(np.linspace(0, len(order) - 1, min(len(order), POINTS)).astype(int))
    axes.step(percent[drawn], shares[drawn], where="post", color=ACCENT, linewidth=1.4)
    if len(order) <= POINTS:
        dots(axes, percent, shares, 3.2, edgecolor=ACCENT)
    marked = np.flatnonzero(low[order])
    axes.plot(percent[marked], shares[marked], "o", markersize=6, color=PAPER, markeredgecolor=INK, markeredgewidth=1.2)
    for rank, at in enumerate(marked[:NAMED]):
        axes.annotate(
            printable(names[order[at]])[:LONGEST], (percent[at], shares[at]), (7, 3 + 8 * rank),
            textcoords="offset points", color=INK, size=7,
        )  # fmt: skip
    axes.set_ylim(0, 1.06)
    ticks(axes.yaxis, 4, whole_percent)
    ticks(axes.xaxis, 6, "{:g} %".format)
    return svg(axes, name)
