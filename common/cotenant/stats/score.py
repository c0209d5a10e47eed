"""The suite's score: a weighted geometric mean of ratios to a target, with an interval; what is missing is counted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from cotenant.stats.interval import half_width
from cotenant.stats.launches import INTERVAL_LAUNCHES, logarithms, means_by_uid


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
    if not all(0 < one < math.inf for one in (*targets.values(), *weight.values())):
        raise ValueError("a target or weight that is no positive number")
    present = tuple(name for name in targets if rates.get(name))
    missing = tuple(name for name in targets if name not in present)
    if not present:
        return SuiteScore(None, None, (), missing)
    logs = [logarithms(list(rates[name].values())) - math.log(targets[name]) for name in present]
    by_uid = [dict(zip(rates[name], of, strict=True)) for name, of in zip(present, logs, strict=True)]
    shares = [weight[name] / sum(weight[one] for one in present) for name in present]
    center = sum(share * float(of.mean()) for share, of in zip(shares, logs, strict=True))
    means = list(means_by_uid(by_uid, shares).values())
    half = half_width(means) if len(means) >= INTERVAL_LAUNCHES else None
    interval = None if half is None else (math.exp(center - half), math.exp(center + half))
    return SuiteScore(math.exp(center), interval, present, missing)
