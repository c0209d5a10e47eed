"""Draws the value of the user that has least over the number of users, and the value that each requires."""

from __future__ import annotations

from markupsafe import Markup

from cotenant.report.capacity import SHOWN
from cotenant.report.pictures.canvas import ACCENT, INK, PAPER, SOFT, axes_of, svg, ticks
from cotenant.stats.carried import Carried

APART = 0.12
"""Half the distance between the points of launches and of a search's rounds with one number of users."""


def over_users(found: Carried, name: str) -> Markup:
    """Return the values over numbers of users, filled where they come from launches, and a line at the required one."""
    shown, required = SHOWN[found.requirement.kind], found.requirement
    least = shown.scale * required.least
    axes = axes_of(2.1, bottom=0.45, left=0.75)
    axes.axhline(least, color=INK, linewidth=0.9, linestyle=(0, (4, 2.5)))
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
