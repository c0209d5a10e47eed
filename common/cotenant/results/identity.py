"""What makes records of equal work: alike, or over several numbers of devices, as points of one curve."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from cotenant.results.record import Record
from cotenant.stats.scaling import scaling

# How often, how observed and where reported do not change the work of one batch.
NOT_WORK = frozenset({"report", "seed", "repeat", "number", "skip"})
# What follows from the number of devices.
_GROWS = ("devices", "batch_size", "batch_size_per_device")

Curve = dict[int, list[float]]
"""The rates of launches, in items per second over all devices, per number of these."""
_DIGITS = 18
_CELL = re.compile(r"(.*)\.c(\d{1,9})", re.DOTALL)


def unique_id(name: str, version: str, arguments: Mapping[str, Any]) -> str:
    """Return a sha256 over the benchmark's name, its source's version and the arguments that change its work.

    Of `data` only counts whether the input is read from files: its path differs between machines.
    Empty where no argument is known (a tenant that failed early, a foreign program): such work is equal to none.
    """
    if not arguments:
        return ""
    work = {key: value for key, value in arguments.items() if key not in NOT_WORK}
    if "data" in work:
        work["data"] = work["data"] is not None
    if not work.get("cached_batch"):
        # Unsaid in records of before there was such a flag, and by programs that have none.
        work.pop("cached_batch", None)
    text = json.dumps([name, version, work], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def job_and_cell(name: str) -> tuple[str, int]:
    """Return a record's name without its cell, and the cell's number from 1; 0 of a job that has no cells."""
    found = _CELL.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, 0)


def natural(label: str) -> tuple[int, str]:
    """Return what tenants and devices are sorted by: numbers by their value, before all others."""
    return (int(label), "") if label.isdecimal() and len(label) <= _DIGITS else (10**_DIGITS, label)


def curves(records: Iterable[Record]) -> dict[tuple[str, str], Curve]:
    """Return a curve per job and work: of launches of the whole machine that count, whatever their cell."""
    found: dict[tuple[str, str], Curve] = defaultdict(lambda: defaultdict(list))
    for record in records:
        devices = record.observed.get("replicas", record.observed.get("world_size"))
        if record.group != "all" or record.statistics is None or record.invalid or not isinstance(devices, int):
            continue
        if devices >= 1 and record.statistics.median > 0:
            found[curve_key(record)][devices].append(record.statistics.median)
    return {one: dict(curve) for one, curve in found.items()}


def curve_key(record: Record) -> tuple[str, str]:
    """Return the name of a record's job, and what is equal in records that differ in their number of devices alone."""
    arguments = {name: one for name, one in record.arguments.items() if name not in NOT_WORK and name not in _GROWS}
    each = record.arguments.get("batch_size_per_device", record.arguments.get("batch_size"))
    work = [record.suite, record.hostname, record.version, each, arguments]
    return job_and_cell(record.name)[0], json.dumps(work, sort_keys=True, default=str)


def with_efficiency(record: Record, earlier: Sequence[Record]) -> Record:
    """Return the record with its efficiency among its meters.

    The record itself where nothing earlier ran the same work on one device.
    """
    of_this = curves([record]).get(curve_key(record))
    alone = curves(earlier).get(curve_key(record), {}).get(1)
    if of_this is None or alone is None or 1 in of_this:
        return record
    (single, several) = scaling({1: alone} | of_this)
    met = {"devices": several.devices, "rate_of_one": single.rate, "efficiency": several.efficiency}
    return msgspec.structs.replace(record, meters=record.meters | {"scaling": met})
