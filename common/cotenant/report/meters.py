"""Meters over the launches of each host, in the order they ran."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from msgspec.structs import replace

from cotenant.frames import pl
from cotenant.results.drawn import MeterSpread, own_meters
from cotenant.results.launches import grouped
from cotenant.results.read import again
from cotenant.results.table import Rows

NAMES = {
    "load_percent": ("Load", "%", 1.0),
    "power_w": ("Power", "W", 1.0),
    "memory_used_bytes": ("Memory in use", "GiB", 2.0**30),
    "temperature_c": ("Temperature", "°C", 1.0),
    "clock_mhz": ("Clock", "MHz", 1.0),
    "available_bytes": ("Memory left on the host", "GiB", 2.0**30),
}
"""The reader's name of a quantity, its unit, and the factor from the record's unit."""

Course = tuple[str, str, list[list[MeterSpread]]]
"""A host, a quantity, and for each launch the meters of all devices, in the unit of NAMES."""


def courses(records: Rows) -> list[Course]:
    """Return the quantities of hosts, and of devices that trained, that were sampled in at least two launches.

    All records of a launch hold the samples of all devices.
    """
    hosts: dict[str, dict[tuple[Any, ...], MeterSpread]] = defaultdict(dict)
    for row, record in again(records.by("start_time")):
        launch = (row["suite"], row["mix"] or row["name"], row["isolation"], row["run_id"])
        for meter in own_meters(record):
            hosts[row["hostname"]].setdefault((launch, meter.quantity, meter.of), meter)
    courses = []
    for host, meters in hosts.items():
        for quantity in NAMES:
            of_quantity = {key: meter for key, meter in meters.items() if meter.quantity == quantity}
            launches = grouped(of_quantity, lambda key: key[0]).values()
            if len(launches) > 1:
                courses.append((host, quantity, [[_scaled(of_quantity[key]) for key in keys] for keys in launches]))
    return courses


def device_load_percent(records: Rows) -> float | None:
    """Return the mean load of the tenants' own devices while they were timed; None if no device reports it."""
    load: float | None = records.columns(pl.col("device_load_percent").mean()).item()
    return load


def _scaled(meter: MeterSpread) -> MeterSpread:
    scale = NAMES[meter.quantity][2]
    return replace(meter, min=meter.min / scale, mean=meter.mean / scale, max=meter.max / scale)
