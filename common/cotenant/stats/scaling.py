"""What k devices are worth: their rate over k times that of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Scaled:
    """`rate` (items per second of all devices) is the median of `launches`; `efficiency` is rate(k) / (k rate(1)).

    `efficiency` is None where nothing ran on one device; its 95 % Welch interval is None below three launches of each.
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
    interval = _interval(alone, rates, devices) if devices > 1 else None
    return Scaled(devices, len(rates), middle, middle / (devices * median(alone)), interval)


def _interval(alone: Sequence[float], rates: Sequence[float], devices: int) -> tuple[float, float] | None:
    # Not before: scipy takes a second to import, and the table below every suite imports this module.
    from cotenant.stats.comparison import compare
    from cotenant.stats.launches import INTERVAL_LAUNCHES

    if min(len(rates), len(alone)) < INTERVAL_LAUNCHES:
        return None
    found = compare(alone, rates).interval
    return None if found is None else (found[0] / devices, found[1] / devices)
