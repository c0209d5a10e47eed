"""Scaling curves, and meters over launches."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from matplotlib.ticker import MaxNLocator, NullLocator

from cotenant.report.pictures.canvas import ACCENT, INK, LINE, SOFT, Margins, axes_of, boxes, svg
from cotenant.report.scaling import Point
from cotenant.results.drawn import Meter


def scaling(points: Sequence[Point], name: str) -> str | None:
    """Return speed-up over devices beside the ideal line; None where there is no one-device cell to be compared to."""
    known = [point for point in points if point.speedup is not None]
    if len(known) < 2:
        return None
    axes = axes_of(2.6, margins=Margins(left=0.62, right=0.3, top=0.15, bottom=0.42))
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
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.set_xlabel("devices")
    axes.set_ylabel("speed-up")
    return svg(axes, name)


def over_launches(launches: Sequence[Sequence[Meter]], name: str) -> str:
    """Return one quantity over launches, in the order they ran: boxes from the lowest to the highest sample of any
    device, and lines at the mean over devices."""
    axes = axes_of(1.6, margins=Margins(left=0.62, right=0.12, top=0.12, bottom=0.3))
    lows, highs = (
        [fold(getattr(one, end) for one in of) for of in launches] for end, fold in (("min", min), ("max", max))
    )
    edges = [(index + 0.6, index + 1.4) for index in range(len(launches))]
    for (start, end), low, high in zip(edges, lows, highs, strict=True):
        boxes(axes, [(start, end)], (low + high) / 2, high - low, facecolor=ACCENT, alpha=0.28)
    for (start, end), of in zip(edges, launches, strict=True):
        mean = fmean(one.mean for one in of)
        axes.plot([start, end], [mean, mean], color=INK, linewidth=1.3, solid_capstyle="butt")
    axes.set_xlim(0.4, len(launches) + 0.6)
    axes.set_ylim(0, 1.08 * max(highs) or 1)
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    return svg(axes, name)
