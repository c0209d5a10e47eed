"""Charts with a row per name: the shares on top of a report, ratios around 1, tenants' progress, shares of a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from matplotlib.axes import Axes

from cotenant.report.answer import NAMED, JobShares
from cotenant.report.beside import MixBlock
from cotenant.report.kept import kept_fields, kept_of
from cotenant.report.kept_rows import VALUE
from cotenant.report.pictures.canvas import (
    ACCENT,
    INK,
    LEFT,
    LINE,
    MOST,
    PAPER,
    SOFT,
    WASH,
    WIDTH,
    axes_of,
    bands,
    beside,
    boxes,
    shares_axis,
    svg,
    ticks,
    whole_percent,
)
from cotenant.report.view import Row
from cotenant.text import printable

LETTER, MARGIN = 0.066, 0.15
"""Inches of a letter of a row's name and of the words beside it, and around these."""


def _rows(
    names: Iterable[str], height: float, right: float, width: float = WIDTH, left: float = 0.0, longest: int = 28
) -> Axes:
    """Return axes with a row per name, the first on top: row i lies at y = i. Names have `left` inches at the least."""
    shown = [printable(name)[:longest] for name in names]
    axes = axes_of(0.5 + height * len(shown), right=right, width=width, left=max(left, _room_for(shown)))
    axes.grid(visible=False, axis="y")
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_yticks(range(len(shown)), shown, color=INK)
    return axes


def _room_for(texts: Iterable[str]) -> float:
    return MARGIN + LETTER * max(map(len, texts))


def _interval(axes: Axes, ends: npt.ArrayLike, y: float, width: float = 1.1, within: bool = False) -> None:
    """Draw a 95 % interval as a line at the height y, dotted if it is `within` a launch."""
    dotted: dict[str, Any] = {"color": SOFT, "linewidth": 0.7, "linestyle": (0, (1, 1.2))}
    axes.plot(ends, [y, y], **(dotted if within else {"color": INK, "linewidth": width}))


DESK, PHONE = 10.0, 4.2
"""Inches of the shares' picture: on a desk, and on a phone, which would shrink its letters."""
MARKS = "osD^"
"""Marks of the first tenants, different also in print; further tenants share the last."""


def shares_picture(rows: Sequence[JobShares], name: str, width: float = DESK) -> Markup:
    """Return the chart of jobs in this order, the first on top; suspect ones are hollow."""
    axes = _rows(
        (row.job.label for row in rows), height=0.165, right=_room_for(map(_numbers, rows)), width=width, longest=22
    )
    low, high = shares_axis(
        end for row in rows for share in row.shares.values() for end in (share.value, *(share.interval or ()))
    )
    for at, row in enumerate(rows):
        axes.axhline(at, color=LINE, linewidth=0.4)
        spread = min(0.5, 0.14 * (len(row.shares) - 1)) / 2
        heights = np.linspace(at - spread, at + spread, len(row.shares))
        for place, (y, share) in enumerate(zip(heights, row.shares.values(), strict=True)):
            if share.interval is not None:
                _interval(axes, np.clip(share.interval, low, high), y, 1.0, share.within)
            axes.plot(
                [np.clip(share.value, low, high)], [y], MARKS[min(place, len(MARKS) - 1)], markersize=4.2,
                color=ACCENT if row.job.doubt is None else PAPER, markeredgecolor=ACCENT, markeredgewidth=0.9,
                clip_on=False,
            )  # fmt: skip
        beside(axes, at, _numbers(row), 8)
    axes.axvline(1, color=INK, linewidth=0.9)
    axes.set_xlim(low, high)
    ticks(axes.xaxis, 7 if width == DESK else 3, whole_percent, steps=[1, 2, 2.5, 5, 10])
    return svg(axes, name)


def _numbers(row: JobShares) -> str:
    ratios = [100 * share.value for share in row.shares.values()]
    if len(ratios) > NAMED:
        return f"{min(ratios):.0f} .. {max(ratios):.0f} %"
    return " · ".join(f"{ratio:.0f}" for ratio in ratios) + " %"


MOST_RATIO = 2.5
"""Ratios beyond this, or below its inverse, are drawn at the end of the axis."""


class Ratio(NamedTuple):
    """A ratio by its name, filled where it is `sure`, and the words beside it."""

    name: str
    value: float
    interval: tuple[float, float] | None
    words: str
    sure: bool = True


def ratios(lines: Sequence[Ratio], margin: float, name: str) -> Markup:
    """Return a row per ratio; ratios from 1 - `margin` to 1 + `margin` count as equal."""
    axes = _rows((line.name for line in lines), height=0.19, right=_room_for(line.words for line in lines), width=8.0)
    ends = [end for line in lines for end in (line.value, *(line.interval or ()))]
    around = (min(0.95, 1 - 2 * margin), max(1.05, 1 + 2 * margin))
    low, high = shares_axis(ends, around, 1 / MOST_RATIO, MOST_RATIO)
    if margin:
        axes.axvspan(1 - margin, 1 + margin, facecolor=WASH, linewidth=0)
    for at, line in enumerate(lines):
        axes.axhline(at, color=LINE, linewidth=0.4)
        if line.interval is not None:
            _interval(axes, np.clip(line.interval, low, high), at)
        axes.plot(
            [np.clip(line.value, low, high)], [at], "o", markersize=4.6, color=ACCENT if line.sure else PAPER,
            markeredgecolor=ACCENT, clip_on=False,
        )  # fmt: skip
        beside(axes, at, line.words, 8)
    axes.axvline(1, color=INK, linewidth=0.9)
    axes.set_xlim(low, high)
    ticks(axes.xaxis, 6, "{:g}".format, steps=[1, 2, 2.5, 5, 10])
    return svg(axes, name)


def progress_bars(block: MixBlock, name: str) -> Markup | None:
    """Return the bars in the tenants' order; None where no tenant's progress is known."""
    known = [(user, kept) for user in block.users if (kept := kept_of(user, VALUE)) is not None]
    if not known:
        return None
    axes = _rows((f"{user['tenant']} {user['job']}" for user, _ in known), height=0.26, right=0.5, left=LEFT)
    most = 1.05
    for y, (_, progress) in enumerate(known):
        boxes(axes, [(0.0, progress.value)], y, 0.62, facecolor=ACCENT, alpha=0.55)
        if (ends := progress.interval) is not None:
            _interval(axes, ends, y, within=progress.within)
            most = max(most, min(MOST, ends[1]))
        most = max(most, progress.value)
        beside(axes, y, whole_percent(progress.value))
    for entitlement in sorted({user["entitlement"] for user, _ in known}):
        axes.axvline(entitlement, color=INK, linewidth=1.0)
    axes.set_xlim(0, most + 0.02)
    axes.xaxis.set_major_formatter(lambda value, _: whole_percent(value))
    return svg(axes, name)


def kept(rows: Sequence[Row], name: str) -> Markup | None:
    """Return a band per job, a line at 1; None for fewer than two jobs, which the table shows as well.

    None, too, where no job ran without slices: the chart on top of the page shows the shares kept in them.
    """
    nodes = [row for row in rows if row.get("user") == "all"]
    both = {row["job"]: [kept_of(row, kept_fields(name)) for name in ("kept", "unsliced_kept")] for row in nodes}
    lines = {job: shares for job, shares in both.items() if any(shares)}
    if len(lines) < 2 or not any(unsliced for _, unsliced in lines.values()):
        return None
    axes = bands([printable(job)[:14] for job in lines])
    axes.axvline(1, color=LINE, linewidth=1.4)
    for at, shares in enumerate(lines.values()):
        for share, y, fill in zip(shares, (at - 0.12, at + 0.12), (ACCENT, PAPER), strict=True):
            if share is None:
                continue
            if share.interval is not None:
                _interval(axes, share.interval, y)
            axes.plot(
                [share.value], [y], marker="o", markersize=5, color=fill, markeredgecolor=ACCENT, markeredgewidth=1.1
            )
    axes.set_xlim(left=0)
    ticks(axes.xaxis, 6)
    return svg(axes, name)
