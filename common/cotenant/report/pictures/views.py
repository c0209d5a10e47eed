"""Draws ratios with their intervals around 1, a job's rates over the dates of its launches, users of a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
from markupsafe import Markup

from cotenant.report.capacity import SHOWN
from cotenant.report.history import RateSeries
from cotenant.report.numbers import rate
from cotenant.report.pictures.canvas import (
    ACCENT,
    INK,
    LINE,
    PAPER,
    SOFT,
    WASH,
    axes_of,
    beside,
    dots,
    interval,
    room_for,
    rows,
    svg,
    ticks,
)
from cotenant.stats.carried import Carried
from cotenant.stats.launches import across_launches
from cotenant.text import printable

WIDTH, ROW = 8.0, 0.19
"""Inches of the picture, and of a row."""
NAME_LENGTH = 28
BEYOND = 0.02
MOST = 2.5
"""Ratios beyond this, or below its inverse, are drawn at the end of the axis."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio by its name, filled where it is `sure`, and the words beside it."""

    name: str
    value: float
    interval: tuple[float, float] | None
    words: str
    sure: bool = True


def ratios(lines: Sequence[Ratio], margin: float, name: str) -> Markup:
    """Return a row per ratio; ratios from 1 - `margin` to 1 + `margin` count as equal."""
    names = [printable(line.name)[:NAME_LENGTH] for line in lines]
    axes = rows(names, ROW, room_for(line.words for line in lines), WIDTH)
    ends = [end for line in lines for end in (line.value, *(line.interval or ()))]
    low = max(1 / MOST, min([*ends, 1 - 2 * margin, 0.95]) - BEYOND)
    high = min(MOST, max([*ends, 1 + 2 * margin, 1.05]) + BEYOND)
    if margin:
        axes.axvspan(1 - margin, 1 + margin, facecolor=WASH, linewidth=0)
    for at, line in enumerate(lines):
        axes.axhline(at, color=LINE, linewidth=0.4)
        if line.interval is not None:
            interval(axes, np.clip(line.interval, low, high), at)
        axes.plot(
            [np.clip(line.value, low, high)], [at], "o", markersize=4.6, color=ACCENT if line.sure else PAPER,
            markeredgecolor=ACCENT, clip_on=False,
        )  # fmt: skip
        beside(axes, at, line.words, 8)
    axes.axvline(1, color=INK, linewidth=0.9)
    axes.set_xlim(low, high)
    ticks(axes.xaxis, 6, "{:g}".format, steps=[1, 2, 2.5, 5, 10])
    return svg(axes, name)


def over_dates(series: RateSeries, name: str) -> Markup:
    """Return a series' rates over their dates: a line at each level, and one down where the level changed."""
    axes = axes_of(1.7, left=0.7)
    seconds = np.array([start.timestamp() for start in series.starts])
    rates = np.array(series.rates)
    room = 0.02 * max(seconds[-1] - seconds[0], 3600.0)
    axes.set_xlim(seconds[0] - room, seconds[-1] + room)
    spread = max(rates.max() - rates.min(), 0.04 * rates.max())
    axes.set_ylim(max(0.0, rates.min() - 0.2 * spread), rates.max() + 0.2 * spread)
    dots(axes, seconds, rates, 3.2, edgecolor=ACCENT, alpha=0.85, clip_on=False)
    sure = [series.starts.index(change.start) for change in series.changes if not change.provisional]
    for first, end in pairwise([0, *sure, len(rates)]):
        level = across_launches(series.rates[first:end]).rate
        axes.plot(seconds[[first, end - 1]], [level, level], color=INK, linewidth=1.3)
    for change in series.changes:
        dashes = (0, (2, 2)) if change.provisional else "-"
        axes.axvline(change.start.timestamp(), color=SOFT, linewidth=1.0, linestyle=dashes)
    form = "%Y-%m-%d" if seconds[-1] - seconds[0] > 2 * 86400 else "%m-%d %H:%M"
    ticks(axes.yaxis, 4, rate)
    ticks(axes.xaxis, 4, lambda value: datetime.fromtimestamp(value, UTC).strftime(form))
    return svg(axes, name)


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
