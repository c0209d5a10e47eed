"""Chooses the next batch size to launch: two octaves away while that is faster, then one, then half an octave.

There are two sizes an octave: powers of two, and 1.5 times these.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

LAUNCHES = 10
"""Most launches of a search for a batch size."""
REACH = 4
"""The divisor of a batch size that does not fit, applied until one does."""
STEPS = (4, 2, 1)
"""Half octaves from the best size to the next one."""
CLIMB = 0.005
"""The least gain by which a size is better than the job's own, and a larger one worth a launch: a larger batch takes
longer to measure, may not fit, and on a plateau gains nothing."""


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Upper bounds of a batch size: it has to be `below` one that did not fit, its step below `longest_step_s`.

    `items` are those that all tenants together count in a step per unit of batch size: 2 for rows of two tenants.
    """

    below: int | None = None
    longest_step_s: float | None = None
    items: float = 1.0

    def allow(self, size: int, rate: float) -> bool:
        """Return whether a size may be tried, if all tenants together have this rate at a size near it."""
        if self.below is not None and size >= self.below:
            return False
        return self.longest_step_s is None or size * self.items / rate <= self.longest_step_s


def grid(least: int, most: int) -> list[int]:
    """Return all sizes of the grid from `least` to `most`."""
    powers = [1 << octave for octave in range(most.bit_length() + 1)]
    sizes = sorted({*powers, *(3 * power // 2 for power in powers[1:])})
    return [size for size in sizes if least <= size <= most]


def next_size(
    logs: Mapping[int, Sequence[float]], limits: SizeLimits, without_rate: Collection[int] = ()
) -> int | None:
    """Return the batch size to launch next; None if the search is over.

    `logs` are the log rates of the launches by size, at least one, in the order of their first launches. Sizes
    `without_rate` are not tried again, nor sizes beyond a slower one, nor above the largest if it is no faster than the
    others.
    """
    best = best_size(logs)
    rates = {size: math.exp(fmean(of)) for size, of in logs.items()}
    others = [rate for size, rate in rates.items() if size != max(rates)]
    rises = rates[max(rates)] > max(others, default=0.0) * (1 + CLIMB)
    # Both sides of the job's own size come first: it may lie beyond a peak.
    for center, step in ((next(iter(logs)), STEPS[0]), *((best, step) for step in STEPS)):
        for size in _around(center, step):
            between = any(min(center, size) < known < max(center, size) for known in logs)
            useless = between or size in rates or size in without_rate or (size > max(logs) and not rises)
            if not useless and limits.allow(size, rates[center]):
                return size
    return None


def best_size(logs: Mapping[int, Sequence[float]]) -> int:
    """Return the fastest size launched: the first one, unless another is faster by CLIMB."""
    means = {size: fmean(of) for size, of in logs.items()}
    first, best = next(iter(means)), max(sorted(means), key=lambda size: means[size])
    return best if means[best] > means[first] + CLIMB else first


def _around(size: int, step: int) -> list[int]:
    """Return the sizes `step` places up and down the grid, the latter if there is one."""
    sizes = grid(1, 2 * REACH * size)
    up, down = bisect.bisect_right(sizes, size) + step - 1, bisect.bisect_left(sizes, size) - step
    return [sizes[up], *(sizes[down : down + 1] if down >= 0 else ())]
