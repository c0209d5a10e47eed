"""The chart on top of a report: a row per job, a mark per tenant at its rate over its baseline, the fair line at 1."""

from __future__ import annotations

from collections.abc import Sequence

from cotenant.report.answer import NAMED, JobShares
from cotenant.report.pictures.canvas import ACCENT, INK, LINE, PAPER, SOFT, axes_of, svg
from cotenant.text import printable

WIDTH, LEFT, RIGHT = 10.0, 1.6, 1.5
"""Inches: of the picture, of the room for the jobs' names, and for the numbers."""
ROW, ABOVE_AND_BELOW = 0.165, 0.5
NAME_LENGTH = 22
MARKS = "osD^"
"""Of the first tenants, that print tells apart too; further ones share the last."""
OUTER = (0.4, 1.6)
"""What lies beyond is drawn at the edge, with its number beside it."""


def shares_picture(rows: Sequence[JobShares], name: str) -> str:
    """Return the chart of jobs in this order, the first on top; suspect ones are hollow."""
    axes = axes_of(ABOVE_AND_BELOW + ROW * len(rows), right=RIGHT, width=WIDTH, left=LEFT)
    axes.grid(visible=False, axis="y")
    ends = [end for row in rows for share in row.shares for end in (share.ratio, *(share.interval or ()))]
    low, high = max(OUTER[0], min(0.9, *ends) - 0.02), min(OUTER[1], max(1.1, *ends) + 0.02)
    for at, row in enumerate(rows):
        axes.axhline(at, color=LINE, linewidth=0.4)
        spread = min(0.5, 0.14 * (len(row.shares) - 1))
        for place, share in enumerate(row.shares):
            y = at - spread / 2 + (spread * place / (len(row.shares) - 1) if spread else 0)
            if share.interval is not None:
                style = {"linewidth": 0.7, "linestyle": (0, (1, 1.2))} if share.within else {"linewidth": 1.0}
                axes.plot(_inside(share.interval, low, high), [y, y], color=SOFT if share.within else INK, **style)
            fill = ACCENT if row.job.doubt is None else PAPER
            mark = MARKS[min(place, len(MARKS) - 1)]
            axes.plot(
                _inside([share.ratio], low, high), [y], mark, markersize=4.2, color=fill, markeredgecolor=ACCENT,
                markeredgewidth=0.9, clip_on=False,
            )  # fmt: skip
        axes.annotate(
            _numbers(row), (1, at), (6, 0), ("axes fraction", "data"), "offset points", va="center", color=INK, size=8
        )
    axes.axvline(1, color=INK, linewidth=0.9)
    axes.set_xlim(low, high)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), [printable(row.job.label)[:NAME_LENGTH] for row in rows], color=INK)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    return svg(axes, name)


def _inside(values: Sequence[float], low: float, high: float) -> list[float]:
    return [min(high, max(low, value)) for value in values]


def _numbers(row: JobShares) -> str:
    ratios = [100 * share.ratio for share in row.shares]
    if len(ratios) > NAMED:
        return f"{min(ratios):.0f} .. {max(ratios):.0f} %"
    return " · ".join(f"{ratio:.0f}" for ratio in ratios) + " %"
