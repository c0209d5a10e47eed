"""Draws tenants' kept shares: bars of a mix, curves of pressure, the worth of a shared device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from matplotlib.ticker import EngFormatter, MaxNLocator, NullLocator

from cotenant.report.beside import MixBlock
from cotenant.report.pictures.canvas import ACCENT, INK, LEFT, LINE, PAPER, SOFT, axes_of, beside, boxes, svg
from cotenant.report.sense import Sensitivity
from cotenant.report.share import SharePoint
from cotenant.results.launches import grouped
from cotenant.text import printable

LETTER, BAR, AROUND = 0.066, 0.26, 0.5
"""Inches of a letter of the tenants' names, of a bar with the room to the next, and above and below all of them."""
NAME_LENGTH = 28
NUMBERS = 0.5
"""Inches beside the bars for the numbers."""


def progress_bars(block: MixBlock, name: str) -> str | None:
    """Return the bars in the tenants' order; None where no tenant's progress is known."""
    known = [(tenant, tenant.progress) for tenant in block.tenants if tenant.progress is not None]
    if not known:
        return None
    labels = [printable(f"{tenant.tenant} {tenant.job}")[:NAME_LENGTH] for tenant, _ in known]
    axes = axes_of(AROUND + BAR * len(known), right=NUMBERS, left=max(LEFT, LETTER * max(map(len, labels)) + 0.15))
    axes.grid(visible=False, axis="y")
    most = 1.05
    for y, (_, progress) in enumerate(known):
        boxes(axes, [(0.0, progress.value)], y, 0.62, facecolor=ACCENT, alpha=0.55)
        if (ends := progress.interval) is not None:
            style = {"linewidth": 0.7, "linestyle": (0, (1, 1.2))} if progress.within else {"linewidth": 1.1}
            axes.plot(ends, [y, y], color=SOFT if progress.within else INK, **style)
            most = max(most, min(1.6, ends[1]))
        most = max(most, progress.value)
        beside(axes, y, f"{100 * progress.value:.0f} %")
    for entitlement in sorted({tenant.entitlement for tenant, _ in known}):
        axes.axvline(entitlement, color=INK, linewidth=1.0)
    axes.set_xlim(0, most + 0.02)
    axes.set_ylim(len(known) - 0.4, -0.6)
    axes.set_yticks(range(len(known)), labels, color=INK)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    return svg(axes, name)


SLICED = {"color": ACCENT, "linestyle": "-", "marker": "o", "markerfacecolor": ACCENT}
NAIVE = {"color": INK, "linestyle": (0, (4, 2.5)), "marker": "s", "markerfacecolor": PAPER}
THOUSAND = 1000
MOST = 1.6
"""The end of an axis at the most: a share far above 1 comes from too few observations."""


def shares_of(curves: Iterable[Sensitivity]) -> tuple[float, float]:
    """Return the ends of an axis that holds every point and interval of these curves, and at least 0.5 to 1.05."""
    points = [point for each in curves for point in each.points]
    ends = [end for point in points for end in (point.kept.value, *(point.kept.interval or ()))]
    return max(0.0, min([0.5, *ends]) - 0.02), min(MOST, max([1.05, *ends]) + 0.02)


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
        low, high = [band[0] for band in bands], [band[1] for band in bands]
        if is_naive:
            for edge in (low, high):
                axes.plot(x, edge, color=SOFT, linewidth=0.8, linestyle=(0, (1, 1.4)))
        else:
            axes.fill_between(x, low, high, facecolor=ACCENT, alpha=0.25, linewidth=0)
        style = NAIVE if is_naive else SLICED
        y = [1.0, *(point.kept.value for point in each.points)]
        axes.plot(x, y, linewidth=1.4, markersize=4.5, markeredgecolor=style["color"], **style)
    axes.set_ylim(*ends)
    most = max((point.achieved for each in curves for point in each.points), default=1)
    axes.set_xlim(-0.03 * most, 1.04 * most)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(EngFormatter(sep="") if most >= THOUSAND else lambda value, _: f"{value:g}")
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
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
    axes.set_xscale("log", base=2)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(users, [str(k) for k in users])
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("users of one device or slice (K)")
    return svg(axes, name)
