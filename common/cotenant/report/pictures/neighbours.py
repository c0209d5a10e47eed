"""Draws tenants' kept shares: bars of a mix, curves of pressure, the worth of a shared device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from matplotlib.ticker import EngFormatter

from cotenant.report.beside import MixBlock
from cotenant.report.pictures.canvas import (
    ACCENT,
    INK,
    LEFT,
    LINE,
    MOST,
    PAPER,
    SOFT,
    axes_of,
    beside,
    boxes,
    doubling,
    interval,
    rows,
    shares_axis,
    svg,
    ticks,
    whole_percent,
)
from cotenant.report.sense import Sensitivity
from cotenant.report.share import SharePoint
from cotenant.results.launches import grouped
from cotenant.text import printable

BAR, NUMBERS = 0.26, 0.5
"""Inches of a bar with the room to the next, and beside the bars for the numbers."""
NAME_LENGTH = 28


def progress_bars(block: MixBlock, name: str) -> str | None:
    """Return the bars in the tenants' order; None where no tenant's progress is known."""
    known = [(tenant, tenant.progress) for tenant in block.tenants if tenant.progress is not None]
    if not known:
        return None
    labels = [printable(f"{tenant.tenant} {tenant.job}")[:NAME_LENGTH] for tenant, _ in known]
    axes = rows(labels, BAR, NUMBERS, left=LEFT)
    most = 1.05
    for y, (_, progress) in enumerate(known):
        boxes(axes, [(0.0, progress.value)], y, 0.62, facecolor=ACCENT, alpha=0.55)
        if (ends := progress.interval) is not None:
            interval(axes, ends, y, within=progress.within)
            most = max(most, min(MOST, ends[1]))
        most = max(most, progress.value)
        beside(axes, y, whole_percent(progress.value))
    for entitlement in sorted({tenant.entitlement for tenant, _ in known}):
        axes.axvline(entitlement, color=INK, linewidth=1.0)
    axes.set_xlim(0, most + 0.02)
    axes.xaxis.set_major_formatter(lambda value, _: whole_percent(value))
    return svg(axes, name)


SLICED = {"color": ACCENT, "linestyle": "-", "marker": "o", "markerfacecolor": ACCENT}
NAIVE = {"color": INK, "linestyle": (0, (4, 2.5)), "marker": "s", "markerfacecolor": PAPER}


def shares_of(curves: Iterable[Sensitivity]) -> tuple[float, float]:
    """Return the ends of an axis that holds every point and interval of these curves, and at least 0.5 to 1.05."""
    points = [point for each in curves for point in each.points]
    ends = [end for point in points for end in (point.kept.value, *(point.kept.interval or ()))]
    return shares_axis(ends, inner=(0.5, 1.05), least=0.0)


def sensitivity(curves: Sequence[Sensitivity], ends: tuple[float, float], name: str) -> str:
    """Return one job's curves on one resource, one for each isolation; `ends` are those of the axis of shares.

    A band shows 95 % intervals. A curve without slices is dashed and hollow, with only the edges of its band, so that
    all can be told apart without colours.
    """
    axes = axes_of(1.75, bottom=0.42, width=2.6, left=0.5)
    axes.axhline(1, color=LINE, linewidth=1.4)
    for each in curves:
        is_naive = each.conditions.isolation == "none"
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
    axes.set_xlabel(f"{curves[0].conditions.unit}/s of the neighbour")
    return svg(axes, name)


SIGNS = "●■◆▲○□◇△"
STYLES = [(mark, fill, line) for fill, line in ((ACCENT, "-"), (PAPER, (0, (4, 2.5)))) for mark in "osD^"]
"""Mark, its fill and the line of each mode, in the order of SIGNS: print tells them apart too."""
MEASURES = {"stp": "STP", "antt": "ANTT", "worst_slowdown": "worst slowdown"}


def signs(points: Sequence[SharePoint]) -> dict[str, str]:
    """Return the sign of each mode in the pictures of these points; those beyond the last share it."""
    modes = dict.fromkeys(point.mode for point in points)
    return {mode: SIGNS[min(at, len(SIGNS) - 1)] for at, mode in enumerate(modes)}


def worth(points: Sequence[SharePoint], measure: str, name: str) -> str | None:
    """Return one of MEASURES over K; None below two known points. The dotted line is for users that take turns."""
    known = [point for point in points if point.measures is not None]
    if len(known) < 2:
        return None
    axes = axes_of(2.0, bottom=0.42, width=2.8, left=0.42)
    users = sorted({point.sharers for point in known})
    turns = {point.sharers: point.devices if measure == "stp" else point.sharers for point in known}
    axes.plot(users, [turns[k] for k in users], color=SOFT, linewidth=0.9, linestyle=(0, (1, 1.6)))
    of_modes = grouped(known, lambda point: point.mode)
    for mode, sign in signs(points).items():
        mark, fill, line = STYLES[SIGNS.index(sign)]
        at = [(point.sharers, getattr(point.measures, measure)) for point in of_modes.get(mode, ())]
        for k, value in at:
            if value.interval is not None:
                axes.plot([k, k], value.interval, color=INK, linewidth=0.9)
        axes.plot(
            [k for k, _ in at], [value.value for _, value in at], marker=mark, markersize=4.5, markerfacecolor=fill,
            markeredgecolor=ACCENT, color=ACCENT, linewidth=1.3, linestyle=line,
        )  # fmt: skip
    doubling(axes, users)
    axes.set_ylim(bottom=0)
    ticks(axes.yaxis, 5)
    axes.set_xlabel("users of one device or slice (K)")
    return svg(axes, name)
