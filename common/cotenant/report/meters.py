"""Meters over the launches of each host, in the order they ran."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

import polars as pl

from cotenant.results.drawn import Meter, own_meters
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
"""The reader's name of a quantity, its unit, and the factor between that and the record's unit."""

Course = tuple[str, str, list[list[Meter]]]
"""A host, a quantity, and for each launch the meters of all devices, in the unit of NAMES."""


def courses(records: Rows) -> list[Course]:
    """Return the quantities of hosts, and of devices that trained, that were sampled in at least two launches.

    All records of a launch hold the same samples, those of all devices.
    """
    hosts: dict[str, dict[tuple[str, str, str, int], dict[tuple[str, str], Meter]]] = defaultdict(dict)
    for row, record in again(records.by("start_time")):
        key = (row["suite"], row["name"], row["isolation"], row["run_id"])
        launch = hosts[row["hostname"]].setdefault(key, {})
        for meter in own_meters(record.fields, row["vcd"]):
            launch.setdefault((meter.quantity, meter.of), meter)
    courses = []
    for host, launches in hosts.items():
        for quantity, (_, _, scale) in NAMES.items():
            meters = [[meter for meter in of.values() if meter.quantity == quantity] for of in launches.values()]
            course = [[_scaled(meter, scale) for meter in of_launch] for of_launch in meters if of_launch]
            if len(course) > 1:
                courses.append((host, quantity, course))
    return courses


def device_load_percent(records: Rows) -> float | None:
    """Return the mean load of the tenants' own devices while they were timed; None where no device reports it."""
    load: float | None = records.columns(pl.col("device_load_percent").mean()).item()
    return load


def mean_of(course: Sequence[Sequence[Meter]]) -> float:
    """Return the mean over launches of the mean over devices."""
    return fmean(fmean(meter.mean for meter in of) for of in course)


def _scaled(meter: Meter, scale: float) -> Meter:
    ends = (meter.min / scale, meter.mean / scale, meter.max / scale)
    return Meter(meter.quantity, meter.of, meter.n, *ends)
