"""The chart on top of a report: a row per job, a mark per tenant at its rate over its baseline, the fair line at 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cotenant.report.answer import NAMED, JobShares
from cotenant.report.pictures import canvas
from cotenant.report.pictures.canvas import ACCENT, INK, LINE, PAPER, beside, interval, shares_axis, svg, whole_percent
from cotenant.text import printable

WIDTH, NARROW = 10.0, 4.2
"""Inches of the picture: on a desk, and on a phone, which would shrink its letters."""
ROW = 0.165
NAME_LENGTH = 22
MARKS = "osD^"
"""Marks of the first tenants, different also in print; further tenants share the last."""


def shares_picture(rows: Sequence[JobShares], name: str, width: float = WIDTH) -> str:
    """Return the chart of jobs in this order, the first on top; suspect ones are hollow."""
    names = [printable(row.job.label)[:NAME_LENGTH] for row in rows]
    axes = canvas.rows(names, ROW, canvas.room_for(map(_numbers, rows)), width)
    low, high = shares_axis(
        end for row in rows for share in row.shares.values() for end in (share.value, *(share.interval or ()))
    )
    for at, row in enumerate(rows):
        axes.axhline(at, color=LINE, linewidth=0.4)
        spread = min(0.5, 0.14 * (len(row.shares) - 1)) / 2
        heights = np.linspace(at - spread, at + spread, len(row.shares))
        for place, (y, share) in enumerate(zip(heights, row.shares.values(), strict=True)):
            if share.interval is not None:
                interval(axes, np.clip(share.interval, low, high), y, 1.0, share.within)
            axes.plot(
                [np.clip(share.value, low, high)], [y], MARKS[min(place, len(MARKS) - 1)], markersize=4.2,
                color=ACCENT if row.job.doubt is None else PAPER, markeredgecolor=ACCENT, markeredgewidth=0.9,
                clip_on=False,
            )  # fmt: skip
        beside(axes, at, _numbers(row), 8)
    axes.axvline(1, color=INK, linewidth=0.9)
    axes.set_xlim(low, high)
    canvas.ticks(axes.xaxis, 7 if width == WIDTH else 3, whole_percent, steps=[1, 2, 2.5, 5, 10])
    return svg(axes, name)


def _numbers(row: JobShares) -> str:
    ratios = [100 * share.value for share in row.shares.values()]
    if len(ratios) > NAMED:
        return f"{min(ratios):.0f} .. {max(ratios):.0f} %"
    return " · ".join(f"{ratio:.0f}" for ratio in ratios) + " %"
