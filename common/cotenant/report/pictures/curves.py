"""Curves over devices, launches, time, users and pressure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from cotenant.report.capacity import SHOWN
from cotenant.report.kept import kept_fields, kept_of
from cotenant.report.pictures.canvas import (
    ACCENT,
    INK,
    LINE,
    PAPER,
    SOFT,
    axes_of,
    shares_axis,
    svg,
    ticks,
    whole_percent,
)
from cotenant.report.pressure import PressureCurve
from cotenant.report.scaling import ScalingPoint
from cotenant.report.view import Row
from cotenant.results.drawn import MeterSpread
from cotenant.stats.capacity import Carried

Values = npt.NDArray[np.float64]
DASHED = (0, (4, 2.5))


def _doubling(axes: Axes, counts: Sequence[int]) -> None:
    """Scale the x axis by powers of two, with ticks at these counts alone."""
    axes.set_xscale("log", base=2)
    axes.minorticks_off()
    axes.set_xticks(counts, [str(count) for count in counts])


def scaling(points: Sequence[ScalingPoint], name: str) -> Markup | None:
    """Return speed-up over devices beside the ideal line; None where there is no one-device cell to be compared to."""
    known = [(point.total_devices, point.speedup) for point in points if point.speedup is not None]
    if len(known) < 2:
        return None
    axes = axes_of(2.6, right=0.3, bottom=0.42)
    devices = [count for count, _ in known]
    axes.plot(devices, devices, color=SOFT, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(
        "ideal", (devices[-1], devices[-1]), (-4, 0), textcoords="offset points", ha="right", color=INK, size=7
    )  # fmt: skip
    axes.plot(devices, [of.value for _, of in known], color=ACCENT, linewidth=1.6, marker="o", markersize=5)
    for count, of in known:
        if of.interval is not None:
            axes.plot([count] * 2, of.interval, color=INK, linewidth=1.1)
        label = f"{of.value:.2f}x  {100 * of.value / count:.0f} %"
        axes.annotate(label, (count, of.value), (5, -11), textcoords="offset points", color=INK, size=7)
    axes.set_yscale("log", base=2)
    axes.set_yticks(devices, [str(count) for count in devices])
    _doubling(axes, devices)
    axes.set_xlim(devices[0] / 1.15, devices[-1] * 1.45)
    axes.set_xlabel("devices")
    axes.set_ylabel("speed-up")
    return svg(axes, name)


def over_launches(launches: Sequence[Sequence[MeterSpread]], name: str) -> Markup:
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


APART = 0.12
"""Half the distance between the points of launches and of a search's rounds with one number of users."""


def over_users(found: Carried, name: str) -> Markup:
    """Return the values over numbers of users, filled where they come from launches, and a line at the required one."""
    shown, required = SHOWN[found.requirement.kind], found.requirement
    least = shown.scale * required.least
    axes = axes_of(2.1, bottom=0.45, left=0.75)
    axes.axhline(least, color=INK, linewidth=0.9, linestyle=DASHED)
    users, values = [], [least]
    for estimates, offset, line, fill in (
        (found.searched, -APART, SOFT, PAPER),
        (found.confirmed.values(), APART, INK, ACCENT),
    ):
        at, worst = [], []
        for estimate in estimates:
            logs = (estimate.worst, *(estimate.interval or ()))
            value, *ends = (shown.scale * required.shown(log) for log in logs)
            if ends:
                axes.plot([estimate.users + offset] * 2, ends, color=line, linewidth=1.2)
            at.append(estimate.users + offset)
            worst.append(value)
            users.append(estimate.users)
            values += [value, *ends]
        axes.plot(at, worst, "o", color=fill, markeredgecolor=ACCENT, markersize=5)
    room = 0.06 * (max(values) - min(values)) or 0.1 * least
    axes.set_ylim(max(0.0, min(values) - room), max(values) + room)
    axes.set_xlim(min(users) - 0.5, max(users) + 0.5)
    ticks(axes.xaxis, 10, integer=True, min_n_ticks=1)
    ticks(axes.yaxis, 5, "{:g}".format)
    axes.set_xlabel("users at once")
    axes.set_ylabel(shown.unit.strip())
    return svg(axes, name)


SLICED = {"color": ACCENT, "linestyle": "-", "marker": "o", "markerfacecolor": ACCENT}
NAIVE = {"color": INK, "linestyle": DASHED, "marker": "s", "markerfacecolor": PAPER}


def shares_of(curves: Iterable[PressureCurve]) -> tuple[float, float]:
    """Return the ends of an axis that holds every point and interval of these curves, and at least 0.5 to 1.05."""
    points = [point for each in curves for point in each.points]
    ends = [end for point in points for end in (point.kept.value, *(point.kept.interval or ()))]
    return shares_axis(ends, inner=(0.5, 1.05), least=0.0)


def over_pressure(curves: Sequence[PressureCurve], ends: tuple[float, float], name: str) -> Markup:
    """Return one job's curves on one resource, one for each isolation; `ends` are those of the axis of shares.

    A band shows 95 % intervals. A curve without slices is dashed and hollow, with only the edges of its band, so that
    all can be told apart without colours.
    """
    axes = axes_of(1.75, bottom=0.42, width=2.6, left=0.5)
    axes.axhline(1, color=LINE, linewidth=1.4)
    for each in curves:
        is_naive = each.isolation == "none"
        x = [0.0, *(point.achieved for point in each.points)]
        # Beside a resting neighbour the share is 1 by definition; at other levels a missing interval leaves a gap.
        bands = [(1.0, 1.0), *(point.kept.interval or (math.nan, math.nan) for point in each.points)]
        if is_naive:
            axes.plot(x, bands, color=SOFT, linewidth=0.8, linestyle=(0, (1, 1.4)))
        else:
            low, high = zip(*bands, strict=True)
            axes.fill_between(x, low, high, facecolor=ACCENT, alpha=0.25, linewidth=0)
        style = NAIVE if is_naive else SLICED
        y = [1.0, *(point.kept.value for point in each.points)]
        axes.plot(x, y, linewidth=1.4, markersize=4.5, markeredgecolor=style["color"], **style)
    axes.set_ylim(*ends)
    most = max((point.achieved for each in curves for point in each.points), default=1)
    axes.set_xlim(-0.03 * most, 1.04 * most)
    ticks(axes.xaxis, 4, EngFormatter(sep="").format_eng if most >= 1000 else "{:g}".format)
    ticks(axes.yaxis, 4, whole_percent)
    axes.set_xlabel(f"{curves[0].unit}/s of the neighbour")
    return svg(axes, name)


SIGNS = "●■◆▲○□◇△"
STYLES = [(mark, fill, line) for fill, line in ((ACCENT, "-"), (PAPER, DASHED)) for mark in "osD^"]
"""Mark, its fill and the line of each mode, in the order of SIGNS: print tells them apart too."""
MEASURES = {"stp": "STP", "antt": "ANTT", "worst_slowdown": "worst slowdown"}


def signs(points: Sequence[Row]) -> dict[str, str]:
    """Return the sign of each mode in the pictures of these points; those beyond the last share it."""
    modes = dict.fromkeys(point["mode"] for point in points)
    return {mode: SIGNS[min(at, len(SIGNS) - 1)] for at, mode in enumerate(modes)}


def worth(points: Sequence[Row], measure: str, name: str) -> Markup | None:
    """Return one of MEASURES over K; None below two known points. The dotted line is for users that take turns."""
    known = [point for point in points if point["stp"] is not None]
    if len(known) < 2:
        return None
    axes = axes_of(2.0, bottom=0.42, width=2.8, left=0.42)
    users = sorted({point["sharers"] for point in known})
    turns = {point["sharers"]: point["devices" if measure == "stp" else "sharers"] for point in known}
    axes.plot(users, [turns[k] for k in users], color=SOFT, linewidth=0.9, linestyle=(0, (1, 1.6)))
    for mode, sign in signs(points).items():
        mark, fill, line = STYLES[SIGNS.index(sign)]
        of_mode = [point for point in known if point["mode"] == mode]
        at = [(point["sharers"], value) for point in of_mode if (value := kept_of(point, kept_fields(measure)))]
        for k, value in at:
            if value.interval is not None:
                axes.plot([k, k], value.interval, color=INK, linewidth=0.9)
        axes.plot(
            [k for k, _ in at], [value.value for _, value in at], marker=mark, markersize=4.5, markerfacecolor=fill,
            markeredgecolor=ACCENT, color=ACCENT, linewidth=1.3, linestyle=line,
        )  # fmt: skip
    _doubling(axes, users)
    axes.set_ylim(bottom=0)
    ticks(axes.yaxis, 5)
    axes.set_xlabel("users of one device or slice (K)")
    return svg(axes, name)
