"""What neighbours cost: the rate together over the rate alone, of launches known by their uid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from cotenant.stats.interval import combined_half_width
from cotenant.stats.launches import INTERVAL_LAUNCHES, logarithms, means_by_uid

Logs = dict[int, float]
"""Logarithms of rates, by uid."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of rates over launches, with its 95 % interval; None where a side has fewer than three launches.

    `n` counts the launches above and below the line; of a `paired` ratio they are the same uids. `logs` are those of
    their rates; of a mean over benchmarks the means, of the uids in which every benchmark has launches.
    """

    ratio: float
    interval: tuple[float, float] | None
    n: tuple[int, int]
    paired: bool
    logs: tuple[Logs, Logs]

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
    paired = len(shared) >= min(INTERVAL_LAUNCHES, len(over), len(under))
    above, below = (_logs(side, shared if paired else list(side)) for side in (over, under))
    return _ratio(fmean(above.values()) - fmean(below.values()), above, below, paired)


def mean_ratio(ratios: Sequence[Ratio]) -> Ratio | None:
    """Return the geometric mean of the ratios of several benchmarks, each of all its launches; None for no ratio.

    Of one uid all benchmarks share the state of the machine. The interval is therefore that of `ratio` over the means
    of uids in which every benchmark has launches: in pairs where every ratio is paired, else Welch's of both sides. No
    interval where these uids are fewer than three. A benchmark's further launches narrow nothing (`suite_score`).
    """
    if not ratios:
        return None
    over, under = (means_by_uid([one.logs[side] for one in ratios]) for side in (0, 1))
    center = fmean(math.log(one.ratio) for one in ratios)
    return _ratio(center, over, under, all(one.paired for one in ratios))


def _logs(rates: Mapping[int, float], uids: Sequence[int]) -> Logs:
    return dict(zip(uids, logarithms([rates[uid] for uid in uids]).tolist(), strict=True))


def _ratio(center: float, over: Logs, under: Logs, paired: bool) -> Ratio:
    n = (len(over), len(under))
    if min(n) < INTERVAL_LAUNCHES:
        return Ratio(math.exp(center), None, n, paired, (over, under))
    samples = [[over[uid] - under[uid] for uid in over]] if paired else [[*over.values()], [*under.values()]]
    half = combined_half_width([(variance(one) / len(one), len(one) - 1) for one in samples])
    return Ratio(math.exp(center), (math.exp(center - half), math.exp(center + half)), n, paired, (over, under))
