"""System-level measures of tenants that run different jobs: Eyerman and Eeckhout, IEEE Micro 28(3), 2008, 42-53.

All of them are of normalised progress: a tenant's rate together over its rate alone. Rates of different jobs are in
different units, and have neither a sum nor a fairness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from cotenant.stats.evenness import Differences, differences
from cotenant.stats.kept import Kept
from cotenant.stats.launches import across_launches

Rates = Mapping[int, float]
"""Items per second, by uid."""


@dataclass(frozen=True, slots=True)
class MixMeasures:
    """Measures of a mix. `progress` is each tenant's rate together over its rate alone; `slices` are those that the
    tenants have together.

    `stp` is system throughput, the sum of progress: how many whole slices the shared ones are worth. `antt` is the mean
    slowdown, `worst_slowdown` that of the tenant `worst`. `fairness` is the least over the greatest progress, from two
    launches on of means over them that are drawn together by their noise. `tax` is 1 - stp / slices: below 0 where
    sharing pays.
    """

    progress: Mapping[str, Kept]
    stp: Kept
    antt: Kept
    worst: str
    worst_slowdown: Kept
    fairness: Kept
    tax: Kept
    slices: float
    differences: Differences | None = None
    """Over the launches; None of one, or of one tenant."""


def system_throughput(progress: Sequence[float]) -> float:
    """Return STP: 1 is as good as taking turns on one slice, the number of tenants a free lunch."""
    return sum(progress)


def mean_slowdown(progress: Sequence[float]) -> float:
    """Return ANTT, the mean of 1 / progress."""
    return fmean(1 / each for each in progress)


def fairness_of_progress(progress: Sequence[float]) -> float:
    """Return the least over the greatest progress: 1 where all suffer equally."""
    return min(progress) / max(progress)


def mix_measures(together: Mapping[str, Rates], alone: Mapping[str, Rates], slices: float) -> MixMeasures | None:
    """Return the measures of tenants by their name, over the uids in which every one has a rate together and alone.

    Launches of one uid share the state of the machine, which progress loses: intervals are t intervals (Student, 1908)
    of the logarithms of each uid's measure. None where there is no such uid, or no tenant. Raises ValueError for a rate
    that is not positive.
    """
    known = [set(together[tenant]) & set(alone.get(tenant, ())) for tenant in together]
    uids = sorted(set.intersection(*known)) if known else []
    if not uids:
        return None
    of_uids = [{tenant: rates[uid] / alone[tenant][uid] for tenant, rates in together.items()} for uid in uids]
    progress = {tenant: _over([of[tenant] for of in of_uids]) for tenant in together}
    stp, antt = (_over([measure([*of.values()]) for of in of_uids]) for measure in (system_throughput, mean_slowdown))
    # The least over the greatest of each launch would be below 1 of equal ones, too.
    differ = differences([[math.log(each) for each in of.values()] for of in of_uids])
    even = fairness_of_progress([*of_uids[0].values()]) if differ is None else differ.range
    fairness = Kept(even, None, len(uids), "launches")
    worst = min(progress, key=lambda tenant: progress[tenant].value)
    ends = None if stp.interval is None else (1 - stp.interval[1] / slices, 1 - stp.interval[0] / slices)
    tax = Kept(1 - stp.value / slices, ends, stp.n, "launches")
    return MixMeasures(progress, stp, antt, worst, progress[worst].inverse(), fairness, tax, slices, differ)


def energy_over_alone(
    watts: Rates, together: Mapping[str, Rates], alone_j: Mapping[str, Mapping[int, float]]
) -> Kept | None:
    """Return the energy of tenants together over that of the same items by each alone, one after another.

    `watts`: of all their devices, by uid; `alone_j`: joules of an item alone, by tenant and uid. None where no uid has
    all of them.
    """
    known = [set(watts)] + [set(rates) & set(alone_j.get(tenant, ())) for tenant, rates in together.items()]
    ratios = [
        watts[uid] / sum(rates[uid] * alone_j[tenant][uid] for tenant, rates in together.items())
        for uid in sorted(set.intersection(*known))
    ]
    return _over(ratios) if together and ratios else None


def _over(values: Sequence[float]) -> Kept:
    across = across_launches(values)
    return Kept(across.rate, across.interval, across.n, "launches")
