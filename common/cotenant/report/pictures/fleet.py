"""How the nodes of a class are spread over the rates of one job: an empirical distribution, its outliers marked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import MaxNLocator

from cotenant.report.pictures.canvas import ACCENT, INK, LINE, PAPER, axes_of, dots, svg
from cotenant.text import printable

POINTS = 400
"""With more nodes the curve is drawn through so many of them, which nobody can tell from all."""
NAMED = 4
NAME_LENGTH = 18


def distribution(ratios: npt.NDArray[np.float64], low: npt.NDArray[np.bool_], names: Sequence[str], name: str) -> str:
    """Return the share of nodes (y) at or below each rate over the median (x); the lowest outliers have their names.

    `ratios`, `low` (which are outliers) and `names` are of the same nodes; a node without a rate has none.
    """
    known = np.flatnonzero(np.isfinite(ratios))
    order = known[np.argsort(ratios[known])]
    percent, shares = 100 * ratios[order], np.arange(1, len(order) + 1) / max(len(order), 1)
    axes = axes_of(1.7, right=0.25, bottom=0.36)
    axes.axvline(100, color=LINE, linewidth=1.2)
    drawn = np.unique(np.linspace(0, len(order) - 1, min(len(order), POINTS)).astype(int)) if len(order) else order
    axes.step(percent[drawn], shares[drawn], where="post", color=ACCENT, linewidth=1.4)
    if len(order) <= POINTS:
        dots(axes, percent, shares, 3.2, edgecolor=ACCENT)
    marked = np.flatnonzero(low[order])
    axes.plot(percent[marked], shares[marked], "o", markersize=6, color=PAPER, markeredgecolor=INK, markeredgewidth=1.2)
    for rank, at in enumerate(marked[:NAMED]):
        axes.annotate(
            printable(names[order[at]])[:NAME_LENGTH], (percent[at], shares[at]), (7, 3 + 8 * rank),
            textcoords="offset points", color=INK, size=7,
        )  # fmt: skip
    axes.set_ylim(0, 1.06)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} %")
    return svg(axes, name)
