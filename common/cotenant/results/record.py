"""The record: what one tenant of one launch leaves behind, as one JSON file.

The benchmark's arguments stand flat at the top, then the fields the original suite's readers know, then our own keys.
`record.schema.json` beside this file is generated from these types; a test compares them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cotenant.findings.finding import Finding
from cotenant.stats.description import Description

SCHEMA = "cotenant-record-1"


class Train(msgspec.Struct, frozen=True):
    """Seconds per kept observation; `sd` is the population's."""

    avg: float
    count: int
    max: float
    min: float
    sd: float
    unit: str = "s"


class TrainItem(msgspec.Struct, frozen=True):
    """Items per second: the items of one observation over `train`'s seconds."""

    avg: float
    max: float
    min: float
    range: float
    unit: str = "items/sec"


class Observed(msgspec.Struct, frozen=True):
    """One observation as it was made, kept or not. Times are of CLOCK_MONOTONIC."""

    start_ns: int
    end_ns: int
    items: float
    data_wait_ns: int
    event_ns: int | None = None

    @classmethod
    def told(cls, fields: dict[str, Any]) -> Observed:
        """Return what an `observation` message says; its further fields are nothing to a record."""
        return cls(**{name: value for name, value in fields.items() if name in cls.__struct_fields__})


class Meeting(msgspec.Struct, frozen=True):
    """How this tenant met the others: when it was ready, t0 as told, its real start, the end of its load."""

    ready_ns: int
    t0_ns: int
    start_ns: int
    load_end_ns: int
    overlap: float
    start_skew_ns: int
    warm_up_ns: list[int]


class Enclosed(msgspec.Struct, frozen=True):
    """What was planned for the slice, what the kernel said of it, its counters, and what could not be enforced."""

    backend: str
    planned: dict[str, Any]
    read_back: dict[str, Any]
    counters: dict[str, Any]
    unenforced: list[str]


class Record(msgspec.Struct, kw_only=True, frozen=True):
    """One tenant of one launch. `arguments` are written flat, before everything else."""

    arguments: dict[str, Any]
    suite: str
    name: str
    run_id: int
    jr_id: int
    vcd: str
    hostname: str
    gpu: str
    cpu_cores: int
    devices: int
    version: str
    unique_id: str
    start_time: str
    end_time: str
    completed: bool
    outcome: str
    message: str
    schema: str = SCHEMA
    unit: str
    train: Train | None = None
    train_item: TrainItem | None = None
    batch_loss: list[float | None]
    epoch_loss: list[float | None]
    losses_checked: int
    losses_non_finite: int
    metrics: dict[str, float]
    ignored: list[str]
    tenant: int
    tenants: int
    group: str
    skip: int
    comparable: bool
    command: list[str]
    log: str
    observations: list[Observed]
    rank_observations: dict[str, list[Observed]]
    statistics: Description | None = None
    rendezvous: Meeting | None = None
    isolation: Enclosed
    machine: dict[str, Any]
    meters: dict[str, Any]
    observed: dict[str, Any]
    findings: list[Finding]

    @property
    def invalid(self) -> bool:
        """Completed, but an error finding says that its number is none."""
        return self.completed and any(finding.severity == "error" for finding in self.findings)


def plain(record: Record) -> dict[str, Any]:
    """Return the record as it is written: flat arguments first, non-finite numbers as null.

    Where an argument has the name of a field, the field's observed value stands there.
    """
    fields: dict[str, Any] = msgspec.to_builtins(record)
    return {**fields.pop("arguments"), **fields}


def encode(record: Record) -> bytes:
    """Return the record's JSON, indented, as one file's content."""
    return msgspec.json.format(msgspec.json.encode(plain(record)), indent=1) + b"\n"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema every record obeys; arguments are additional properties."""
    schema = msgspec.json.schema(Record)
    body = schema["$defs"]["Record"]
    body["properties"].pop("arguments")
    body["required"].remove("arguments")
    return schema
