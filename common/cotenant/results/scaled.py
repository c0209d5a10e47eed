"""Records of one job over several numbers of devices: which belong together, and what each is worth beside one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from cotenant.results.identity import NOT_WORK, job_and_cell
from cotenant.results.record import Record
from cotenant.stats.scaling import scaling

# What follows from the number of devices.
_GROWS = ("devices", "batch_size", "batch_size_per_device")

Curve = dict[int, list[float]]
"""The rates of launches, in items per second over all devices, per number of these."""


def curves(records: Iterable[Record]) -> dict[tuple[str, str], Curve]:
    """Return a curve per job and work: of launches of the whole machine that count, whatever their cell."""
    found: dict[tuple[str, str], Curve] = defaultdict(lambda: defaultdict(list))
    for record in records:
        devices = record.observed.get("replicas", record.observed.get("world_size"))
        if record.group != "all" or record.statistics is None or record.invalid or not isinstance(devices, int):
            continue
        if devices >= 1 and record.statistics.median > 0:
            found[key(record)][devices].append(record.statistics.median)
    return {one: dict(curve) for one, curve in found.items()}


def key(record: Record) -> tuple[str, str]:
    """Return the name of a record's job, and what is equal in records that differ in their number of devices alone."""
    arguments = {name: one for name, one in record.arguments.items() if name not in NOT_WORK and name not in _GROWS}
    each = record.arguments.get("batch_size_per_device", record.arguments.get("batch_size"))
    work = [record.suite, record.hostname, record.version, each, arguments]
    return job_and_cell(record.name)[0], json.dumps(work, sort_keys=True, default=str)


def with_efficiency(record: Record, earlier: Sequence[Record]) -> Record:
    """Return the record with its efficiency among its meters.

    The record itself where nothing earlier ran the same work on one device.
    """
    of_this = curves([record]).get(key(record))
    alone = curves(earlier).get(key(record), {}).get(1)
    if of_this is None or alone is None or 1 in of_this:
        return record
    (single, several) = scaling({1: alone} | of_this)
    met = {"devices": several.devices, "rate_of_one": single.rate, "efficiency": several.efficiency}
    return msgspec.structs.replace(record, meters=record.meters | {"scaling": met})
