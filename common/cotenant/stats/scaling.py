"""What k devices are worth: their rate over k times that of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from cotenant.stats.launches import interval_around, logarithms

MEDIAN_OVER_MEAN = math.sqrt(math.pi / 2)
"""The standard error of the median of many normal errors over that of their mean; of few it is a little less."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """`rate` (items per second of all devices) is the median of `launches`; `efficiency` is rate(k) / (k rate(1)).

    `efficiency` is None where nothing ran on one device; its 95 % interval is None below three launches of each.
    """

    devices: int
    launches: int
    rate: float
    efficiency: float | None
    interval: tuple[float, float] | None


def scaled(devices: int, rates: Sequence[float], alone: Sequence[float]) -> Scaled:
    """Return what so many devices are worth by the rates of their launches, and of those `alone` on one device.

    The interval around the quotient of medians is Welch's (1947) of the logarithms, as wide as medians err.
    Raises ValueError for a number of devices below one, no launch, and a rate that is not positive.
    """
    if devices < 1:
        raise ValueError(f"a number of devices: {devices}")
    together, rate = logarithms(rates).tolist(), median(rates)
    if not alone:
        return Scaled(devices, len(rates), rate, None, None)
    efficiency = rate / (devices * median(alone))
    if devices == 1:
        return Scaled(devices, len(rates), rate, efficiency, None)
    interval = interval_around(math.log(efficiency), together, logarithms(alone).tolist(), width=MEDIAN_OVER_MEAN)
    return Scaled(devices, len(rates), rate, efficiency, interval)
