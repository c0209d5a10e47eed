"""Scaling curves and meters over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from cotenant.report.pictures.canvas import ACCENT, INK, LINE, SOFT, WASH, Margins, axes_of, svg
from cotenant.report.scaling import Point
from cotenant.report.terminal import printable
from cotenant.results.detail import Series

Numbers = npt.NDArray[np.float64]
SAMPLES = 400
LINES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))


def scaling(points: Sequence[Point], name: str) -> str | None:
    """Return speed-up over devices beside the ideal line; None where there is no one-device cell to be compared to."""
    known = [point for point in points if point.speedup is not None]
    if len(known) < 2:
        return None
    alone = known[0].median
    axes = axes_of(2.6, margins=Margins(left=0.62, right=0.3, top=0.15, bottom=0.42))
    devices = [point.total_devices for point in known]
    axes.plot(devices, devices, color=SOFT, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate("ideal", (devices[-1], devices[-1]), (-4, 0), textcoords="offset points", ha="right", size=7)
    axes.plot(devices, [point.speedup or 0.0 for point in known], color=ACCENT, linewidth=1.6, marker="o", markersize=5)
    for point in known:
        if point.across.interval is not None:
            axes.plot(
                [point.total_devices] * 2, [end / alone for end in point.across.interval], color=INK, linewidth=1.1
            )
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


def meter(series: Sequence[Series], t0_ns: int, load: tuple[int, int], name: str) -> tuple[str, str]:
    """Return one meter of all devices over seconds from GO, the load shaded, and a sentence on what is not drawn."""
    axes = axes_of(1.5, margins=Margins(left=0.62, right=0.5, top=0.12, bottom=0.3))
    axes.axvspan(*((one - t0_ns) / 1e9 for one in load), facecolor=WASH, linewidth=0)
    longest = max(len(one.values) for one in series)
    drawn = [_samples(one, t0_ns) for one in series]
    said = f"Every {-(-longest // SAMPLES)}th of {longest:,} samples drawn." if longest > SAMPLES else ""
    if len(series) > len(LINES) and all(np.array_equal(seconds, drawn[0][0]) for seconds, _ in drawn):
        _envelope(axes, drawn)
        said = f"Median of {len(series)} devices, and from the lowest to the highest. {said}".strip()
    else:
        for number, (one, (seconds, values)) in enumerate(zip(series, drawn, strict=True)):
            axes.plot(seconds, values, color=ACCENT, linewidth=1.3, linestyle=LINES[number % len(LINES)])
            if len(seen := np.flatnonzero(np.isfinite(values))):
                at = (seconds[seen[-1]], values[seen[-1]])
                axes.annotate(printable(one.of), at, (4, 0), textcoords="offset points", va="center", size=7)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    return svg(axes, name), said


def _samples(series: Series, t0_ns: int) -> tuple[Numbers, Numbers]:
    """Return seconds from GO and values, thinned; a missing sample is NaN, which leaves a gap."""
    step = max(1, -(-len(series.values) // SAMPLES))
    seconds = (np.array(series.time_ns[::step], float) - t0_ns) / 1e9
    return seconds, np.array([np.nan if value is None else value for value in series.values[::step]], float)


def _envelope(axes: Axes, drawn: Sequence[tuple[Numbers, Numbers]]) -> None:
    """More lines than can be told apart: their median, and the room between the lowest and the highest."""
    seconds, values = drawn[0][0], np.vstack([one for _, one in drawn])
    known = np.isfinite(values).any(axis=0)
    seconds, values = seconds[known], values[:, known]
    axes.fill_between(
        seconds, np.nanmin(values, axis=0), np.nanmax(values, axis=0), facecolor=ACCENT, alpha=0.25, linewidth=0
    )
    axes.plot(seconds, np.nanmedian(values, axis=0), color=ACCENT, linewidth=1.3)
