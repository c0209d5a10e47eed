"""What k devices are worth: their rate over k times that of one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, variance

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


def scaling(rates: Mapping[int, Sequence[float]]) -> tuple[Scaled, ...]:
    """Return the efficiency of each number of devices, given the rates of its launches; the fewest devices first.

    Raises ValueError for a number of devices below one or without a launch, and for a rate that is not positive.
    """
    if not all(devices >= 1 for devices in rates):
        raise ValueError(f"numbers of devices: {sorted(rates)}")
    return tuple(_scaled(devices, rates[devices], rates.get(1)) for devices in sorted(rates))


def _scaled(devices: int, rates: Sequence[float], alone: Sequence[float] | None) -> Scaled:
    middle = median(rates) if rates else 0.0
    if not all(rate > 0 for rate in rates) or not rates:
        raise ValueError(f"rates of {devices} devices: {list(rates)}")
    if not alone:
        return Scaled(devices, len(rates), middle, None, None)
    efficiency = middle / (devices * median(alone))
    interval = _interval(efficiency, alone, rates) if devices > 1 else None
    return Scaled(devices, len(rates), middle, efficiency, interval)


def _interval(efficiency: float, alone: Sequence[float], rates: Sequence[float]) -> tuple[float, float] | None:
    """Return the interval around the quotient of medians: Welch's (1947) of the logarithms, as wide as medians err."""
    # Not before: scipy takes a second to import, and the table below every suite imports this module.
    from cotenant.stats.launches import INTERVAL_LAUNCHES, combined_half_width

    if min(len(rates), len(alone)) < INTERVAL_LAUNCHES:
        return None
    logs = [[math.log(rate) for rate in side] for side in (alone, rates)]
    half = MEDIAN_OVER_MEAN * combined_half_width([(variance(side) / len(side), len(side) - 1) for side in logs])
    return efficiency * math.exp(-half), efficiency * math.exp(half)
