"""Draws the value of the user that has least over the number of users, and the value that each requires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.ticker import MaxNLocator

from cotenant.report.pictures.canvas import ACCENT, INK, PAPER, SOFT, axes_of, svg

APART = 0.12
"""Half the distance between the points of launches and of a search's rounds with one number of users."""


@dataclass(frozen=True, slots=True)
class LeastOfUsers:
    """The value of the user that has least among a number of users, with its interval, if launches suffice for one.

    `sure`: the value comes from whole launches, not from a search's rounds.
    """

    users: int
    value: float
    ends: Sequence[float]
    sure: bool


def over_users(points: Sequence[LeastOfUsers], least: float, label: str, name: str) -> str:
    """Return the values over numbers of users, filled where they are sure, and a line at the required one."""
    axes = axes_of(2.1, bottom=0.45, left=0.75)
    axes.axhline(least, color=INK, linewidth=0.9, linestyle=(0, (4, 2.5)))
    for sure in (False, True):
        drawn = [point for point in points if point.sure is sure]
        offset = APART if sure else -APART
        for point in drawn:
            if point.ends:
                axes.plot([point.users + offset] * 2, point.ends, color=INK if sure else SOFT, linewidth=1.2)
        style: dict[str, Any] = {"color": ACCENT if sure else PAPER, "markeredgecolor": ACCENT, "markersize": 5}
        axes.plot([point.users + offset for point in drawn], [point.value for point in drawn], "o", **style)
    shown = [least, *(value for point in points for value in (point.value, *point.ends))]
    room = 0.06 * (max(shown) - min(shown)) or 0.1 * least
    axes.set_ylim(max(0.0, min(shown) - room), max(shown) + room)
    axes.set_xlim(min(point.users for point in points) - 0.5, max(point.users for point in points) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("users at once")
    axes.set_ylabel(label)
    return svg(axes, name)
