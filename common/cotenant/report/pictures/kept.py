"""What is kept of the rate alone in the slice, per job: together in slices, and together without."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from cotenant.report.interference import Block
from cotenant.report.pictures.canvas import ACCENT, INK, LINE, PAPER, bands, svg
from cotenant.stats.interference import Ratio
from cotenant.text import printable

LEAST_LINES = 2
NAME_LENGTH = 14


def kept(block: Block, name: str) -> str | None:
    """Return a band per job, a line at 1; None for fewer than two jobs, which the table shows as well."""
    lines = [line for line in block.lines if line.tenant is None and (line.kept or line.unsliced_kept)]
    if len(lines) < LEAST_LINES:
        return None
    axes = bands([printable(line.job)[:NAME_LENGTH] for line in lines])
    axes.axvline(1, color=LINE, linewidth=1.4)
    for at, line in enumerate(lines):
        _mark(axes, line.kept, at - 0.12, ACCENT)
        _mark(axes, line.unsliced_kept, at + 0.12, PAPER)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    return svg(axes, name)


def _mark(axes: Axes, found: Ratio | None, y: float, fill: str) -> None:
    if found is None:
        return
    if found.interval is not None:
        axes.plot(found.interval, [y, y], color=INK, linewidth=1.1)
    axes.plot([found.ratio], [y], marker="o", markersize=5, color=fill, markeredgecolor=ACCENT, markeredgewidth=1.1)
