"""Decides whether records are of equal work, also on different numbers of devices."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import msgspec

from cotenant.confidential import HASHED, arguments_without, is_secret
from cotenant.results.record import Record

# These do not change the work of one batch.
NOT_WORK = frozenset({"report", "seed", "repeat", "number", "skip"})
# Tuning may change these, since they do not change the work of an item.
TUNABLE = frozenset({"batch_size", "batch_size_per_device", "workers", "compile", "channels_last"})
# Values that follow from the number of devices.
_GROWS = ("devices", "batch_size", "batch_size_per_device")

_DIGITS = 18
_CELL = re.compile(r"(.*)\.c(\d{1,9})", re.DOTALL)


def unique_id(name: str, version: str, arguments: Mapping[str, Any]) -> str:
    """Return a sha256 over the benchmark's name, its source's version and the arguments that change its work.

    Secrets, and a record's arguments that may be secrets, are left out. Since paths differ between machines, `data`
    counts only as input from files or not. The id is empty if no argument is known (a tenant that failed early, a
    foreign program): such work equals no other.
    """
    if not arguments:
        return ""
    shown = arguments_without(arguments, hides=lambda name, value: is_secret(name) or value.startswith(HASHED))
    work = {key: value for key, value in shown.items() if key not in NOT_WORK}
    if "data" in work:
        work["data"] = work["data"] is not None
    for flag in ("cached_batch", "deterministic"):
        # Older records, and programs without these flags, have no value for them.
        if not work.get(flag):
            work.pop(flag, None)
    if "channels_last" in work:
        # The device's default layout is in `kernels`.
        work["channels_last"] = bool(work["channels_last"])
    text = json.dumps([name, version, work], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def job_and_cell(name: str) -> tuple[str, int]:
    """Return a record's name without its cell, and the cell's number from 1, or 0 for a job without cells."""
    cell = _CELL.fullmatch(name)
    return (cell[1], int(cell[2])) if cell else (name, 0)


def natural(label: str) -> tuple[int, str]:
    """Return a key that sorts tenants and devices: numbers by value, before all other labels."""
    return (int(label), "") if label.isdecimal() and len(label) <= _DIGITS else (10**_DIGITS, label)


def _point(record: Record) -> tuple[int, float]:
    """Return the number of devices and the rate of a launch of the whole machine; 0 and 0 without a rate."""
    devices = record.observed.get("replicas", record.observed.get("world_size"))
    if record.group != "all" or record.statistics is None or record.invalid or not isinstance(devices, int):
        return 0, 0.0
    return devices, record.statistics.median


def _work_per_device(record: Record) -> list[Any]:
    """Return the values that do not depend on the cell and the number of devices."""
    arguments = {name: value for name, value in record.arguments.items() if name not in NOT_WORK and name not in _GROWS}
    batch_size = record.arguments.get("batch_size_per_device", record.arguments.get("batch_size"))
    return [job_and_cell(record.name)[0], record.suite, record.hostname, record.version, batch_size, arguments]


def with_efficiency(record: Record, earlier: Sequence[Record]) -> Record:
    """Return the record with its efficiency among its meters.

    The record is unchanged if no earlier record has the same work on one device.
    """
    devices, rate = _point(record)
    work = _work_per_device(record)
    points = [_point(other) for other in earlier if _work_per_device(other) == work]
    single_rates = [rate_of_one for number, rate_of_one in points if number == 1]
    if devices < 2 or not single_rates:
        return record
    of_one = median(single_rates)
    scaling = {"devices": devices, "rate_of_one": of_one, "efficiency": rate / (devices * of_one)}
    return msgspec.structs.replace(record, meters=record.meters | {"scaling": scaling})
