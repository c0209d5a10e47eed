"""Draws the worth of a shared device over its number of users: throughput and slowdown, a line for each mode."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.ticker import MaxNLocator, NullLocator

from cotenant.report.pictures.canvas import ACCENT, INK, PAPER, SOFT, axes_of, svg
from cotenant.report.share import SharePoint
from cotenant.results.launches import grouped

SIGNS = "●■◆▲○□◇△"
STYLES = [(mark, fill, line) for fill, line in ((ACCENT, "-"), (PAPER, (0, (4, 2.5)))) for mark in "osD^"]
"""Mark, its fill and the line of each mode, in the order of SIGNS: print tells them apart too."""
WIDTH, HEIGHT = 2.8, 2.0
MEASURES = {"stp": "STP", "antt": "ANTT", "worst_slowdown": "worst slowdown"}


def signs(points: Sequence[SharePoint]) -> dict[str, str]:
    """Return the sign of each mode in the pictures of these points; those beyond the last share it."""
    modes = dict.fromkeys(point.mode for point in points)
    return {mode: SIGNS[min(at, len(SIGNS) - 1)] for at, mode in enumerate(modes)}


def worth(points: Sequence[SharePoint], measure: str, name: str) -> str | None:
    """Return one of MEASURES over K; None below two known points. The dotted line is that of users who take turns."""
    known = [point for point in points if point.measures is not None]
    if len(known) < 2:
        return None
    axes = axes_of(HEIGHT, bottom=0.42, width=WIDTH, left=0.42)
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
