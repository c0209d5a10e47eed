"""The suite's score: a weighted geometric mean of ratios to a target, with an interval; what is missing is counted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cotenant.stats.interval import combined_half_width
from cotenant.stats.launches import INTERVAL_LAUNCHES, logarithms


@dataclass(frozen=True, slots=True)
class SuiteScore:
    """`value` is of the `present` benchmarks, and no score of the suite unless `missing` is empty.

    `interval` (95 %) is None where a benchmark has fewer than three launches.
    """

    value: float | None
    interval: tuple[float, float] | None
    present: tuple[str, ...]
    missing: tuple[str, ...]


def suite_score(
    rates: Mapping[str, Sequence[float]], targets: Mapping[str, float], weights: Mapping[str, float] | None = None
) -> SuiteScore:
    """Return the score of launches' rates per benchmark against target rates; a weight is 1 where none is given.

    The variance of the logarithm is the sum of the benchmarks', each weighted twice, with Satterthwaite's (1946)
    degrees of freedom. Raises ValueError for a rate, target or weight that is not positive.
    """
    weight = {name: (weights or {}).get(name, 1.0) for name in targets}
    if not all(0 < one < math.inf for one in (*targets.values(), *weight.values())):
        raise ValueError("a target or weight that is no positive number")
    present = tuple(name for name in targets if rates.get(name))
    missing = tuple(name for name in targets if name not in present)
    if not present:
        return SuiteScore(None, None, (), missing)
    total = sum(weight[name] for name in present)
    center, terms = 0.0, []
    for name in present:
        logs, share = logarithms(rates[name]), weight[name] / total
        center += share * (float(logs.mean()) - math.log(targets[name]))
        if len(logs) >= INTERVAL_LAUNCHES:
            terms.append((share**2 * float(logs.var(ddof=1)) / len(logs), len(logs) - 1))
    if len(terms) < len(present):
        return SuiteScore(math.exp(center), None, present, missing)
    half = combined_half_width(terms)
    return SuiteScore(math.exp(center), (math.exp(center - half), math.exp(center + half)), present, missing)
