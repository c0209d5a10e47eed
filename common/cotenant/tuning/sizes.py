"""Which batch size to launch next: by two octaves while that is faster, then by one, then by half of one around there.

Sizes lie two an octave: powers of two, and three halves of them.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

LAUNCHES = 10
"""How many launches a search for a batch size takes at most."""
REACH = 4
"""Where the job does not fit it gets so many times less, until it does."""
STEPS = (4, 2, 1)
"""Half octaves from the best size to the next one."""
CLIMB = 0.005
"""A size is better than the job's own, and there is a larger one worth a launch, where it is faster by this part: a
larger batch takes longer to be measured, may not fit, and on a plateau gains nothing."""


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Upper bounds of a batch size: `below` did not fit; from `longest_step_s` on a step would take longer.

    `items` are what a step of all tenants counts for each one of its batch size: two rows of two tenants, or tokens.
    """

    below: int | None = None
    longest_step_s: float | None = None
    items: float = 1.0

    def allow(self, size: int, rate: float) -> bool:
        """Tell whether a size may be tried, where all tenants together have this rate at a size near to it."""
        if self.below is not None and size >= self.below:
            return False
        return self.longest_step_s is None or size * self.items / rate <= self.longest_step_s


def grid(least: int, most: int) -> list[int]:
    """Return all sizes of the grid from `least` to `most`."""
    powers = [1 << octave for octave in range(most.bit_length() + 1)]
    sizes = sorted({1, *powers, *(3 * power // 2 for power in powers[1:])})
    return [size for size in sizes if least <= size <= most]


def next_size(
    logs: Mapping[int, Sequence[float]], limits: SizeLimits, without_rate: Collection[int] = ()
) -> int | None:
    """Return the batch size to launch next; None where the search is over.

    `logs` are the log rates of each size's launches, one size at the least, in the order of first sight; sizes
    `without_rate` are not tried again. Nothing is tried beyond a size that was slower, nor above the largest one where
    that is no faster than the others.
    """
    best = best_size(logs)
    rates = {size: math.exp(fmean(of)) for size, of in logs.items()}
    others = [rate for size, rate in rates.items() if size != max(rates)]
    rises = rates[max(rates)] > max(others, default=0.0) * (1 + CLIMB)
    # Both sides of the job's own size first: beyond a rise may lie a cliff that has been passed already.
    for center, step in ((next(iter(logs)), STEPS[0]), *((best, step) for step in STEPS)):
        for size in _around(center, step):
            between = any(min(center, size) < known < max(center, size) for known in logs)
            useless = between or size in rates or size in without_rate or (size > max(logs) and not rises)
            if not useless and limits.allow(size, rates[center]):
                return size
    return None


def best_size(logs: Mapping[int, Sequence[float]]) -> int:
    """Return the fastest size of those that were launched: the first one, unless another is faster by CLIMB."""
    means = {size: fmean(of) for size, of in logs.items()}
    first, best = next(iter(means)), max(sorted(means), key=lambda size: means[size])
    return best if means[best] > means[first] + CLIMB else first


def _around(size: int, step: int) -> list[int]:
    """Return the size so many places further up in the grid, and the one further down, if there is any."""
    sizes = grid(1, 2 * REACH * size)
    up, down = bisect.bisect_right(sizes, size) + step - 1, bisect.bisect_left(sizes, size) - step
    return [sizes[up], *(sizes[down : down + 1] if down >= 0 else ())]
