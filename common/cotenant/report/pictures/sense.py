"""Curves of sensitivity: a job's kept share over its neighbour's use of one resource, with slices and without."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from matplotlib.ticker import EngFormatter, MaxNLocator

from cotenant.report.pictures.canvas import ACCENT, INK, LINE, PAPER, SOFT, axes_of, svg
from cotenant.report.sense import Sensitivity

SLICED = {"color": ACCENT, "linestyle": "-", "marker": "o", "markerfacecolor": ACCENT}
NAIVE = {"color": INK, "linestyle": (0, (4, 2.5)), "marker": "s", "markerfacecolor": PAPER}
WIDTH, HEIGHT = 2.6, 1.75
THOUSAND = 1000
MOST = 1.6
"""An axis reaches no higher: a share far above 1 is of too few observations."""


def shares_of(curves: Iterable[Sensitivity]) -> tuple[float, float]:
    """Return the ends of an axis that holds every point and interval of some curves, 0.5 to 1.05 at the least."""
    points = [point for each in curves if each.curve is not None for point in each.curve.points]
    ends = [end for point in points for end in (point.kept.value, *(point.kept.interval or ()))]
    return max(0.0, min([0.5, *ends]) - 0.02), min(MOST, max([1.05, *ends]) + 0.02)


def sensitivity(curves: Sequence[Sensitivity], ends: tuple[float, float], name: str) -> str:
    """Return the curves of one job on one resource, each of its isolation; `ends` are those of the axis of shares.

    A band is of 95 % intervals. What has no slices is dashed, hollow, and its band is drawn by its edges: all can be
    told apart without colours.
    """
    axes = axes_of(HEIGHT, bottom=0.42, width=WIDTH, left=0.5)
    axes.axhline(1, color=LINE, linewidth=1.4)
    for each in curves:
        points = each.curve.points if each.curve is not None else ()
        is_naive = each.conditions.isolation == "none"
        x = [0.0, *(point.achieved for point in points)]
        # Beside a resting neighbour there is nothing to be unsure of; elsewhere no interval is no band.
        bands = [(1.0, 1.0), *(point.kept.interval or (math.nan, math.nan) for point in points)]
        low, high = [band[0] for band in bands], [band[1] for band in bands]
        if is_naive:
            for edge in (low, high):
                axes.plot(x, edge, color=SOFT, linewidth=0.8, linestyle=(0, (1, 1.4)))
        else:
            axes.fill_between(x, low, high, facecolor=ACCENT, alpha=0.25, linewidth=0)
        style = NAIVE if is_naive else SLICED
        y = [1.0, *(point.kept.value for point in points)]
        axes.plot(x, y, linewidth=1.4, markersize=4.5, markeredgecolor=style["color"], **style)
    axes.set_ylim(*ends)
    most = max((point.achieved for each in curves if each.curve is not None for point in each.curve.points), default=1)
    axes.set_xlim(-0.03 * most, 1.04 * most)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(EngFormatter(sep="") if most >= THOUSAND else lambda value, _: f"{value:g}")
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_xlabel(f"{curves[0].conditions.unit}/s of the neighbour")
    return svg(axes, name)
