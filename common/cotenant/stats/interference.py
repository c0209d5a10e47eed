"""What neighbours cost: the rate together over the rate alone, of launches known by their uid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cotenant.stats.interval import combined_half_width
from cotenant.stats.launches import INTERVAL_LAUNCHES, logarithms

Term = tuple[float, int]
"""The variance of a mean of logarithms, and its degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of rates over launches, with its 95 % interval; None where a side has fewer than three launches.

    `n` counts the launches above and below the line; of a `paired` ratio they are the same uids. `terms` are the
    variances that the interval comes from, and empty without one.
    """

    ratio: float
    interval: tuple[float, float] | None
    n: tuple[int, int]
    paired: bool
    terms: tuple[Term, ...] = ()

    @property
    def interference(self) -> float:
        """What is lost of the rate below the line: 1 - ratio. Below 0 it is a gain."""
        return 1 - self.ratio


def ratio(over: Mapping[int, float], under: Mapping[int, float]) -> Ratio | None:
    """Return rates `over` / rates `under`, both by uid; None where one of them is empty.

    Launches of one uid share the state of the machine, which their ratio loses: the t interval (Student, 1908) is that
    of the logarithms of these ratios. Where fewer than three uids are shared and a side has more, all launches count
    as they are, with Welch's (1947) interval. Both are exact or cautious whatever the launches share.
    Raises ValueError for a rate that is not positive.
    """
    if not over or not under:
        return None
    shared = sorted(over.keys() & under.keys())
    if len(shared) >= min(INTERVAL_LAUNCHES, len(over), len(under)):
        n = len(shared)
        differences = logarithms([over[uid] for uid in shared]) - logarithms([under[uid] for uid in shared])
        return _ratio(float(differences.mean()), [differences], (n, n), paired=True)
    sides = logarithms(list(over.values())), logarithms(list(under.values()))
    difference = float(sides[0].mean() - sides[1].mean())
    return _ratio(difference, sides, (len(over), len(under)), paired=False)


def mean_ratio(ratios: Sequence[Ratio]) -> Ratio | None:
    """Return the geometric mean of the ratios of several benchmarks; `n` is that of the one with the fewest launches.

    The benchmarks' variances add up, with Satterthwaite's (1946) degrees of freedom, as in a suite's score: that is of
    launches that err independently. None for no ratio.
    """
    if not ratios:
        return None
    logs = [math.log(one.ratio) for one in ratios]
    n = (min(one.n[0] for one in ratios), min(one.n[1] for one in ratios))
    known = all(one.interval is not None for one in ratios)
    terms = [(part / len(ratios) ** 2, degrees) for one in ratios for part, degrees in one.terms] if known else []
    return _of_terms(sum(logs) / len(logs), terms, n, all(one.paired for one in ratios))


def _ratio(center: float, samples: Sequence[npt.NDArray[np.float64]], n: tuple[int, int], paired: bool) -> Ratio:
    enough = min(n) >= INTERVAL_LAUNCHES
    terms = [(float(one.var(ddof=1)) / len(one), len(one) - 1) for one in samples] if enough else []
    return _of_terms(center, terms, n, paired)


def _of_terms(center: float, terms: Sequence[Term], n: tuple[int, int], paired: bool) -> Ratio:
    if not terms:
        return Ratio(math.exp(center), None, n, paired)
    half = combined_half_width(terms)
    return Ratio(math.exp(center), (math.exp(center - half), math.exp(center + half)), n, paired, tuple(terms))
