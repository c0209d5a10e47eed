"""The chart on top of a report: a row per job, a mark per tenant at its rate over its baseline, the fair line at 1."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.ticker import MaxNLocator

from cotenant.report.answer import NAMED, JobShares
from cotenant.report.pictures.canvas import ACCENT, INK, LINE, PAPER, SOFT, axes_of, beside, shares_axis, svg
from cotenant.text import printable

WIDTH, NARROW = 10.0, 4.2
"""Inches of the picture: on a desk, and on a phone, which would shrink its letters."""
LETTER, MARGIN = 0.066, 0.15
"""Inches of a letter of the jobs' names and of the numbers beside them, and around these."""
ROW, ABOVE_AND_BELOW = 0.165, 0.5
NAME_LENGTH = 22
MARKS = "osD^"
"""Marks of the first tenants, different also in print; further tenants share the last."""


def shares_picture(rows: Sequence[JobShares], name: str, width: float = WIDTH) -> str:
    """Return the chart of jobs in this order, the first on top; suspect ones are hollow."""
    names = [printable(row.job.label)[:NAME_LENGTH] for row in rows]
    left, right = (MARGIN + LETTER * max(map(len, words)) for words in (names, list(map(_numbers, rows))))
    axes = axes_of(ABOVE_AND_BELOW + ROW * len(rows), right=right, width=width, left=left)
    axes.grid(visible=False, axis="y")
    ends = [end for row in rows for share in row.shares.values() for end in (share.value, *(share.interval or ()))]
    low, high = shares_axis(ends)
    for at, row in enumerate(rows):
        axes.axhline(at, color=LINE, linewidth=0.4)
        spread = min(0.5, 0.14 * (len(row.shares) - 1))
        for place, share in enumerate(row.shares.values()):
            y = at - spread / 2 + (spread * place / (len(row.shares) - 1) if spread else 0)
            if share.interval is not None:
                style = {"linewidth": 0.7, "linestyle": (0, (1, 1.2))} if share.within else {"linewidth": 1.0}
                axes.plot(_inside(share.interval, low, high), [y, y], color=SOFT if share.within else INK, **style)
            fill = ACCENT if row.job.doubt is None else PAPER
            mark = MARKS[min(place, len(MARKS) - 1)]
            axes.plot(
                _inside([share.value], low, high), [y], mark, markersize=4.2, color=fill, markeredgecolor=ACCENT,
                markeredgewidth=0.9, clip_on=False,
            )  # fmt: skip
        beside(axes, at, _numbers(row), 8)
    axes.axvline(1, color=INK, linewidth=0.9)
    axes.set_xlim(low, high)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), names, color=INK)
    axes.xaxis.set_major_locator(MaxNLocator(7 if width == WIDTH else 3, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    return svg(axes, name)


def _inside(values: Sequence[float], low: float, high: float) -> list[float]:
    return [min(high, max(low, value)) for value in values]


def _numbers(row: JobShares) -> str:
    ratios = [100 * share.value for share in row.shares.values()]
    if len(ratios) > NAMED:
        return f"{min(ratios):.0f} .. {max(ratios):.0f} %"
    return " · ".join(f"{ratio:.0f}" for ratio in ratios) + " %"
