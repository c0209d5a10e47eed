"""The worth of k devices: their rate over k times that of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from cotenant.stats.kept import Kept
from cotenant.stats.launches import interval_around, logarithms

MEDIAN_OVER_MEAN = math.sqrt(math.pi / 2)
"""The standard error of the median of many normal errors over that of their mean; of few it is a little less."""


def efficiency(devices: int, rates: Sequence[float], alone: Sequence[float]) -> Kept | None:
    """Return rate(k) / (k rate(1)) by the launches of so many devices, and of those `alone` on one; None without these.

    The interval around the quotient of medians is Welch's (1947) of the logarithms, as wide as medians err; None below
    three launches of each, and of one device. Raises ValueError for a number of devices below one, no launch, and a
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
