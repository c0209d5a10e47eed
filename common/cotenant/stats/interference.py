"""Ratios over launches known by their uid: what neighbours cost, and the suite's score against targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from cotenant.stats.launches import INTERVAL_LAUNCHES, interval_around, logarithms, means_by_uid

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


def interval_of_quotient(
    over: float, over_ends: tuple[float, float], under: float, under_ends: tuple[float, float]
) -> tuple[float, float]:
    """Return the 95 % interval of `over` / `under` from those of both, which are estimated independently.

    Distances from the estimates add as squares, on logarithms, each end's from those that move the quotient there
    (Zou and Donner, Statistics in Medicine 27, 2008: MOVER). Ends need not lie evenly around their estimate. Raises
    ValueError for what is not positive.
    """
    numbers = (over, *over_ends, under, *under_ends)
    if not all(0 < value < math.inf for value in numbers):
        raise ValueError(f"estimates and ends of intervals: {numbers}")
    (over_low, over_high), (under_low, under_high) = over_ends, under_ends
    center = math.log(over / under)
    down = math.hypot(math.log(over / over_low), math.log(under_high / under))
    up = math.hypot(math.log(over_high / over), math.log(under / under_low))
    return math.exp(center - down), math.exp(center + up)


def mean_ratio(ratios: Sequence[Ratio]) -> Ratio | None:
    """Return the geometric mean of the ratios of several benchmarks, each of all its launches; None for no ratio.

    Of one uid all benchmarks share the state of the machine. The interval is therefore that of `ratio` over the means
    of uids in which every benchmark has launches: in pairs where every ratio is paired, else Welch's of both sides. No
    interval where these uids are fewer than three. A benchmark's further launches narrow nothing (`suite_score`).
    """
    if not ratios:
        return None
    over, under = (means_by_uid([each.logs[side] for each in ratios]) for side in (0, 1))
    center = fmean(math.log(each.ratio) for each in ratios)
    return _ratio(center, over, under, all(each.paired for each in ratios))


def _logs(rates: Mapping[int, float], uids: Sequence[int]) -> Logs:
    return dict(zip(uids, logarithms([rates[uid] for uid in uids]).tolist(), strict=True))


def _ratio(center: float, over: Logs, under: Logs, paired: bool) -> Ratio:
    samples = [[over[uid] - under[uid] for uid in over]] if paired else [[*over.values()], [*under.values()]]
    interval = interval_around(center, *samples)
    return Ratio(math.exp(center), interval, (len(over), len(under)), paired, (over, under))


@dataclass(frozen=True, slots=True)
class SuiteScore:
    """`value` is of the `present` benchmarks, and no score of the suite unless `missing` is empty.

    `interval` (95 %) is None where fewer than three uids have a launch of every present benchmark.
    """

    value: float | None
    interval: tuple[float, float] | None
    present: tuple[str, ...]
    missing: tuple[str, ...]


def suite_score(
    rates: Mapping[str, Mapping[int, float]],
    targets: Mapping[str, float],
    weights: Mapping[str, float] | None = None,
) -> SuiteScore:
    """Return the score of launches' rates, per benchmark and uid, against target rates; a weight is 1 where none is.

    The value is of all launches: the weighted mean over benchmarks of their mean logarithms. Launches of one uid share
    the state of the machine, so the interval's half-width is that of the t interval (Student, 1908) over uids in which
    every benchmark has a launch, of each uid's weighted mean of logarithms. Further launches of some of the benchmarks
    move the value and narrow nothing: the interval is cautious then, unless what a uid speeds up for one benchmark it
    slows down for another. Raises ValueError for a rate, target or weight that is not positive.
    """
    weight = {name: (weights or {}).get(name, 1.0) for name in targets}
    if not all(0 < number < math.inf for number in (*targets.values(), *weight.values())):
        raise ValueError("a target or weight that is no positive number")
    present = tuple(name for name in targets if rates.get(name))
    missing = tuple(name for name in targets if name not in present)
    if not present:
        return SuiteScore(None, None, (), missing)
    logs = [logarithms(list(rates[name].values())) - math.log(targets[name]) for name in present]
    by_uid = [dict(zip(rates[name], of, strict=True)) for name, of in zip(present, logs, strict=True)]
    shares = [weight[name] / sum(weight[other] for other in present) for name in present]
    center = sum(share * float(of.mean()) for share, of in zip(shares, logs, strict=True))
    interval = interval_around(center, list(means_by_uid(by_uid, shares).values()))
    return SuiteScore(math.exp(center), interval, present, missing)
