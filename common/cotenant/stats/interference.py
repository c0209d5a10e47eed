"""Shares of rates over launches: left by neighbours, of a mix, of many devices, of a suite against targets.

Measures of a mix are Eyerman and Eeckhout's (IEEE Micro 28(3), 2008, 42-53), of normalised progress: the share that
each tenant keeps. Rates of different jobs are in different units, and have neither a sum nor a fairness.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from cotenant.stats.evenness import Differences, differences
from cotenant.stats.kept import Kept, Over
from cotenant.stats.launches import INTERVAL_LAUNCHES, by_uid, interval_around, logarithms, means_by_uid

Rates = Mapping[int, float]
"""Items per second, by uid."""
MEDIAN_OVER_MEAN = math.sqrt(math.pi / 2)
"""The standard error of the median of many normal errors over the standard error of their mean; a little less for
few."""


def rate_ratio(over: Rates, under: Rates) -> Kept | None:
    """Return rates `over` / rates `under`, over launches; None if one of them is empty.

    Launches of one uid share the state of the machine, which drops out of their ratio: the t interval (Student, 1908)
    is over the logarithms of these ratios. If fewer than three uids are shared and both sides have more, all launches
    count as they are, with Welch's (1947) interval, and `n` is the smaller side's. Both are exact or cautious whatever
    the launches share. Raises ValueError for a rate that is not positive.
    """
    if not over or not under:
        return None
    above, below = (logarithms([*side.values()]).tolist() for side in (over, under))
    pairs = [*log_ratios(over, under).values()]
    if len(pairs) >= min(INTERVAL_LAUNCHES, len(above), len(below)):
        return _kept(fmean(pairs), pairs)
    return _kept(fmean(above) - fmean(below), above, below)


def _kept(center: float, *samples: Sequence[float], over: Over = "launches") -> Kept:
    """Return exp(`center`), with the interval of the means of these samples of logarithms."""
    return Kept(math.exp(center), interval_around(center, *samples), min(map(len, samples)), over)


def ratios(over: Rates, under: Rates) -> dict[int, float]:
    """Return the ratios of the uids that both sides have."""
    return {uid: over[uid] / under[uid] for uid in sorted(over.keys() & under.keys())}


def log_ratios(over: Rates, under: Rates) -> dict[int, float]:
    """Return the logarithms of the ratios of the uids that both sides have."""
    return {uid: math.log(value) for uid, value in ratios(over, under).items()}


def interval_of_quotient(
    over: float, over_ends: tuple[float, float], under: float, under_ends: tuple[float, float]
) -> tuple[float, float]:
    """Return the 95 % interval of `over` / `under` from both intervals, which are estimated independently.

    Distances from the estimates add as squares, on logarithms, for each end from the ends that move the quotient there
    (Zou and Donner, Statistics in Medicine 27, 2008: MOVER). Ends need not be symmetric around their estimate. Raises
    ValueError for a number that is not positive.
    """
    numbers = (over, *over_ends, under, *under_ends)
    if not all(0 < value < math.inf for value in numbers):
        raise ValueError(f"estimates and ends of intervals: {numbers}")
    (over_low, over_high), (under_low, under_high) = over_ends, under_ends
    center = math.log(over / under)
    down = math.hypot(math.log(over / over_low), math.log(under_high / under))
    up = math.hypot(math.log(over_high / over), math.log(under / under_low))
    return math.exp(center - down), math.exp(center + up)


def efficiency(devices: int, rates: Sequence[float], alone: Sequence[float]) -> Kept | None:
    """Return rate(k) / (k rate(1)) by launches on k `devices` and launches `alone` on one; None without the latter.

    The interval around the quotient of medians is Welch's (1947) of the logarithms, as wide as medians err; None below
    three launches of each, and for one device. Raises ValueError for a number of devices below one, no launch, and a
    rate that is not positive.
    """
    if devices < 1:
        raise ValueError(f"a number of devices: {devices}")
    together = logarithms(rates).tolist()
    if not alone:
        return None
    samples = together, logarithms(alone).tolist()
    value = median(rates) / (devices * median(alone))
    interval = None if devices == 1 else interval_around(math.log(value), *samples, width=MEDIAN_OVER_MEAN)
    return Kept(value, interval, min(map(len, samples)), "launches")


def mean_kept(jobs: Iterable[tuple[Kept | None, Rates]]) -> Kept | None:
    """Return the geometric mean over jobs of the share that each keeps; None if no share is known.

    Each share comes with the logarithms of its job's launches, by uid. Launches of one uid share the state of the
    machine: with at least three uids that every job has, the t interval (Student, 1908) is over their means, for what
    this suite keeps. Else, with at least three jobs, it is over the jobs. A job's further launches narrow nothing.
    """
    measured = [(share.value, logs) for share, logs in jobs if share is not None]
    if not measured:
        return None
    centers = logarithms([value for value, _ in measured]).tolist()
    of_uids = [*means_by_uid([logs for _, logs in measured]).values()]
    if len(of_uids) >= INTERVAL_LAUNCHES:
        return _kept(fmean(centers), of_uids)
    return _kept(fmean(centers), centers, over="jobs")


@dataclass(frozen=True, slots=True)
class MixMeasures:
    """The measures of a mix, by each tenant's progress: the share of its rate that it keeps.

    `stp` is system throughput, the sum of progress: the number of whole slices that the slices shared by all are worth.
    `antt` is the mean slowdown, `worst_slowdown` the greatest one. `fairness` is the least over the greatest progress,
    from two launches on by means over them that are shrunk by their noise. `tax` is 1 - stp / slices: below 0 if
    sharing pays.
    """

    stp: Kept
    antt: Kept
    worst_slowdown: Kept
    fairness: Kept
    tax: Kept
    differences: Differences | None = None
    """Over the launches; None for one, or for one tenant."""


def mix_measures(
    progress: Collection[Kept], together: Mapping[str, Rates], alone: Mapping[str, Rates], slices: float
) -> MixMeasures | None:
    """Return the measures of tenants with this progress, over the uids in which each has a rate together and alone.

    Launches of one uid share the state of the machine, which drops out of progress: intervals are t intervals (Student,
    1908) of the logarithms of each uid's measure. None if there is no such uid, or no tenant. Raises ValueError for a
    rate that is not positive.
    """
    kept = [ratios(rates, alone.get(tenant, {})) for tenant, rates in together.items()]
    of_uids = [*by_uid(kept).values()]
    if not of_uids:
        return None
    stp, antt = (
        _over([sum(of_uid) for of_uid in of_uids]),
        _over([fmean(1 / share for share in of_uid) for of_uid in of_uids]),
    )
    # The least over the greatest share of each launch would be below 1 for equal tenants, too.
    differ = differences([[math.log(share) for share in of_uid] for of_uid in of_uids])
    even = min(of_uids[0]) / max(of_uids[0]) if differ is None else differ.range
    fairness = Kept(even, None, stp.n, "launches")
    worst = min(progress, key=lambda share: share.value)
    ends = None if stp.interval is None else (1 - stp.interval[1] / slices, 1 - stp.interval[0] / slices)
    tax = Kept(1 - stp.value / slices, ends, stp.n, "launches")
    return MixMeasures(stp, antt, worst.inverse(), fairness, tax, differ)


def energy_over_alone(
    watts: Rates, together: Mapping[str, Rates], alone_j: Mapping[str, Mapping[int, float]]
) -> Kept | None:
    """Return the energy of tenants together over the energy of the same items by each alone, one after another.

    `watts` are of all their devices, by uid; `alone_j` the joules of an item alone, by tenant and uid. None if no uid
    has all of them.
    """
    joules = [
        {uid: rate * alone_j[tenant][uid] for uid, rate in rates.items() if uid in alone_j.get(tenant, ())}
        for tenant, rates in together.items()
    ]
    of_uids = [over / sum(under) for over, *under in by_uid([watts, *joules]).values()]
    return _over(of_uids) if together and of_uids else None


def _over(values: Sequence[float]) -> Kept:
    logs = logarithms(values).tolist()
    return _kept(fmean(logs), logs)


@dataclass(frozen=True, slots=True)
class SuiteScore:
    """`value` is for the `present` benchmarks, and no score of the suite unless `missing` is empty.

    `interval` (95 %) is None if fewer than three uids have a launch of every present benchmark.
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
    """Return the score of launches' rates, per benchmark and uid, against target rates; weights default to 1.

    The value is over all launches: the weighted mean over benchmarks of their mean logarithms. Launches of one uid
    share the state of the machine, so the interval's half-width is the t interval's (Student, 1908) over uids in which
    every benchmark has a launch, of each uid's weighted mean of logarithms. Further launches of some benchmarks move
    the value and narrow nothing: the interval is cautious then, unless a uid speeds up one benchmark and slows down
    another by the same cause. Raises ValueError for a rate, target or weight that is not positive.
    """
    weight = {name: (weights or {}).get(name, 1.0) for name in targets}
    if not all(0 < number < math.inf for number in (*targets.values(), *weight.values())):
        raise ValueError("a target or weight that is no positive number")
    present = tuple(name for name in targets if rates.get(name))
    missing = tuple(name for name in targets if not rates.get(name))
    if not present:
        return SuiteScore(None, None, (), missing)
    logs = [logarithms(list(rates[name].values())) - math.log(targets[name]) for name in present]
    launches = [
        dict(zip(rates[name], of_benchmark, strict=True)) for name, of_benchmark in zip(present, logs, strict=True)
    ]
    shares = [weight[name] / sum(weight[other] for other in present) for name in present]
    center = sum(share * float(of_benchmark.mean()) for share, of_benchmark in zip(shares, logs, strict=True))
    interval = interval_around(center, [*means_by_uid(launches, shares).values()])
    return SuiteScore(math.exp(center), interval, present, missing)
