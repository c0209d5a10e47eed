"""Which batch size to launch next. Sizes lie two an octave: powers of two, and three halves of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from cotenant.tuning.curve import SizeCurve, curve

LAUNCHES = 10
"""How many launches a search for a batch size takes at most."""
REACH = 4
"""A size is tried only if it is at most this many times as large, or as small, as one whose rate is known."""
CLIMB = 0.005
"""Beyond its largest size a search goes at once only where that one is faster than all others by this part: a larger
batch takes longer to be measured, may not fit, and on a plateau gains nothing."""
ENOUGH = 0.0005
"""A search ends where no further launch promises to raise the best expected rate by this part of it."""


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
    logs: Mapping[int, Sequence[float]], limits: SizeLimits, spread: float, without_rate: Collection[int] = ()
) -> int | None:
    """Return the batch size to launch next, one of `logs` again or a new one; None where the search is over.

    `logs` are the log rates of each size's launches, one size at the least; sizes `without_rate` are not tried again.
    """
    for most in (_most(logs), max(logs) * REACH):
        worths = _curve(logs, most, limits, spread, without_rate).worth(list(logs))
        size = max(worths, key=lambda size: (worths[size], -size))
        if worths[size] > ENOUGH:
            return size
    return None


def best_size(logs: Mapping[int, Sequence[float]], spread: float) -> int:
    """Return the size with the highest expected rate of those that were launched."""
    return curve(logs, list(logs), spread).best_of(list(logs))


def _most(logs: Mapping[int, Sequence[float]]) -> int:
    """Return the largest size that is worth a look before all smaller ones are known."""
    means = {size: fmean(of) for size, of in logs.items()}
    largest = max(means)
    others = [mean for size, mean in means.items() if size != largest]
    return largest * REACH if means[largest] > max(others, default=-math.inf) + CLIMB else largest


def _curve(
    logs: Mapping[int, Sequence[float]], most: int, limits: SizeLimits, spread: float, without_rate: Collection[int]
) -> SizeCurve:
    """Return the curve at every size that may be launched, those with a rate included."""
    rates = {size: math.exp(fmean(of)) for size, of in logs.items()}
    new = [
        size
        for size in grid(max(1, min(rates) // REACH), most)
        if size not in without_rate and limits.allow(size, rates[_nearest(rates, size)])
    ]
    return curve(logs, sorted({*new, *logs}), spread)


def _nearest(sizes: Iterable[int], size: int) -> int:
    return min(sizes, key=lambda known: abs(math.log(known / size)))
