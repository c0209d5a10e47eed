"""The meters of a record as numbers: what was sampled of each device, and of the host, while tenants were timed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cotenant.results.record import MOST
from cotenant.results.row import finite_of, mapping_of, whole_of

HOST = "host"
DEVICE_QUANTITIES = ("load_percent", "power_w", "memory_used_bytes", "temperature_c", "clock_mhz")
HOST_QUANTITIES = ("available_bytes",)


@dataclass(frozen=True, slots=True)
class Meter:
    """The samples of one quantity, whose name ends with its unit; `of` is a device's index, or `host`."""

    quantity: str
    of: str
    n: int
    min: float
    mean: float
    max: float


def meters_of(fields: Mapping[str, Any]) -> tuple[Meter, ...]:
    """Return what the record's `meters` hold; whatever is malformed is left out."""
    meters = mapping_of(fields.get("meters"))
    return (*_of_devices(mapping_of(meters.get("devices"))), *_of_host(mapping_of(meters.get("memory"))))


def _of_devices(devices: Mapping[str, Any]) -> Iterator[Meter]:
    for value in devices.values():
        device = mapping_of(value)
        index = whole_of(device.get("index"))
        for quantity in DEVICE_QUANTITIES:
            if index is not None and (found := _meter(quantity, str(index), device.get(quantity))) is not None:
                yield found


def _of_host(memory: Mapping[str, Any]) -> Iterator[Meter]:
    for quantity in HOST_QUANTITIES:
        if (found := _meter(quantity, HOST, memory.get(quantity))) is not None:
            yield found


def _meter(quantity: str, of: str, value: Any) -> Meter | None:
    spread = mapping_of(value)
    n, numbers = whole_of(spread.get("n")), [finite_of(spread.get(name)) for name in ("min", "mean", "max")]
    low, mean, high = (one if one is not None and 0 <= one < MOST else math.nan for one in numbers)
    # A mean is rounded: of equal samples it may lie beside them.
    ordered = low <= mean <= high or math.isclose(low, high)
    return Meter(quantity, of, n, low, mean, high) if n is not None and n > 0 and ordered else None
