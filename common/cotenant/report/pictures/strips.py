"""The strip plot: every observation of every tenant, launch by launch, with the median and its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import EngFormatter, MaxNLocator

from cotenant.report.pictures.canvas import ACCENT, INK, bands, boxes, dots, svg
from cotenant.report.summary import Estimate

Rates = npt.NDArray[np.float64]
BAND_HEIGHT = 0.72


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """One tenant: the rates of its kept observations, one array a launch, and what is estimated from them."""

    label: str
    launches: Sequence[Rates]
    estimate: Estimate


class _RateFormatter(EngFormatter):
    """As tables have them: `12k` and `1.2M`, but no `m` for a thousandth, which reads like a million."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:.4g}" if abs(x) < 1 else str(super().__call__(x, pos))


def thinned(rates: Rates, most: int) -> Rates:
    """Return at most so many of the rates, evenly over their order; the lowest and the highest stay."""
    if len(rates) <= most:
        return rates
    chosen: Rates = np.sort(rates)[np.linspace(0, len(rates) - 1, most).round().astype(int)]
    return chosen


def strips(tenants: Sequence[Strip], most: int, name: str) -> tuple[str, str]:
    """Return the picture, and a sentence on what is not drawn: of each launch at most `most` observations are."""
    axes = bands([strip.label for strip in tenants])
    drawn = total = 0
    for y, strip in enumerate(tenants):
        found = strip.estimate
        if found.interval is not None:
            boxes(axes, [found.interval], y, BAND_HEIGHT, facecolor=ACCENT, alpha=0.16, clip_on=False)
        step = BAND_HEIGHT * 0.84 / max(1, len(strip.launches))
        first = y - step * (len(strip.launches) - 1) / 2
        for number, rates in enumerate(strip.launches):
            shown = thinned(rates, most)
            dots(
                axes,
                shown,
                np.full(len(shown), first + number * step),
                2.6,
                edgecolor=ACCENT,
                alpha=0.75,
                clip_on=False,
            )
            drawn, total = drawn + len(shown), total + len(rates)
        half = BAND_HEIGHT / 2
        axes.plot(
            [found.rate, found.rate],
            [y - half, y + half],
            color=INK,
            linewidth=1.5,
            solid_capstyle="butt",
            clip_on=False,
        )
    values = np.concatenate([rates for strip in tenants for rates in strip.launches])
    ends = [end for strip in tenants for end in strip.estimate.interval or (strip.estimate.rate,)]
    low, high = min(values.min(initial=np.inf), *ends), max(values.max(initial=0.0), *ends)
    room = 0.04 * (high - low) or 0.02 * high
    axes.set_xlim(max(0.0, low - room), high + room)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(_RateFormatter(sep=""))
    thinning = f"{drawn:,} of {total:,} observations drawn, evenly over their order." if drawn < total else ""
    return svg(axes, name), thinning
