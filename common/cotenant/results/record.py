"""The record: what one tenant of one launch leaves behind, as one JSON file.

The benchmark's arguments stand flat at the top, then the fields the original suite's readers know, then our own keys.
`record.schema.json` beside this file is generated from these types; a test compares them.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import msgspec

from cotenant.findings.finding import Finding
from cotenant.stats.budget import Amount
from cotenant.stats.description import Description

Outcome = Literal[
    "completed",
    "failed",
    "out_of_memory",
    "host_out_of_memory",
    "device_out_of_memory",
    "timeout",
    "nan",
    "not_isolated",
    "interrupted",
    "aborted",
    "missing_data",
    "missing_package",
    "unsupported",
]


MOST = 1 << 63  # no clock and no count gets there


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
    """One observation as it was made, kept or not. Times are of CLOCK_MONOTONIC; `items` is null where it was NaN."""

    start_ns: int
    end_ns: int
    items: float | None
    data_wait_ns: int
    event_ns: int | None = None

    @classmethod
    def told(cls, fields: dict[str, Any]) -> Observed:
        """Return what an `observation` message says; its further fields are nothing to a record."""
        items, event_ns = fields["items"], fields.get("event_ns")
        return cls(
            start_ns=fields["start_ns"],
            end_ns=fields["end_ns"],
            items=items if isinstance(items, int) or math.isfinite(items) else None,
            data_wait_ns=fields["data_wait_ns"],
            event_ns=event_ns if isinstance(event_ns, int) and 0 <= event_ns < MOST else None,
        )

    @property
    def possible(self) -> bool:
        """It took time and counted something: only of such observations a rate is a number."""
        return 0 <= self.start_ns < self.end_ns < MOST and self.items is not None and 1 / MOST < self.items < MOST


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
    """What was planned for the slice, what the kernel said of it, its counters, and what could not be had.

    Counters of time are of GO to the last DONE, the rest of the slice's life. `unenforced` are limits, `uncounted`
    counters, and `enabled_by` says for each of them what would make it be had. `policies` hold for all tenants alike:
    `cache`, `on_oom`, and where they were asked for `budget_s` and `until_interval`.
    """

    backend: str
    planned: dict[str, Any]
    read_back: dict[str, Any]
    counters: dict[str, Any]
    unenforced: list[str]
    policies: dict[str, str | float] = {}
    uncounted: list[str] = []
    enabled_by: dict[str, str] = {}


class Record(msgspec.Struct, kw_only=True, frozen=True):
    """One tenant of one launch. The benchmark's arguments stand flat, before everything else.

    `asked` is the work it was ready for, `given` what GO told it to do; the flat `number` and `repeat` are what it did.
    Without a runner both are null.

    A `solo` launch is of one tenant alone in the slice it has beside the others: its `name` ends in `.solo`, so that no
    reader takes it for a launch of its job; `tenant` is its number beside the others, and `tenants` is 1.
    """

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
    outcome: Outcome
    message: str
    schema: Literal["cotenant-record-1"] = "cotenant-record-1"
    unit: str
    train: Train | None
    train_item: TrainItem | None
    batch_loss: list[float | None]
    epoch_loss: list[float | None]
    losses_checked: int
    losses_non_finite: int
    metrics: dict[str, float | None]
    ignored: list[str]
    tenant: int
    tenants: int
    solo: bool = False
    group: str
    skip: int
    asked: Amount | None
    given: Amount | None
    comparable: bool
    command: list[str]
    log: str
    observations: list[Observed]
    rank_observations: dict[str, list[Observed]]
    statistics: Description | None
    rendezvous: Meeting | None
    isolation: Enclosed
    machine: dict[str, Any]
    meters: dict[str, Any]
    observed: dict[str, Any]
    findings: list[Finding]

    @property
    def invalid(self) -> bool:
        """Completed, but an error finding says that its number is none."""
        return self.completed and any(finding.severity == "error" for finding in self.findings)


def known_outcome(outcome: str, message: str) -> tuple[Outcome, str]:
    """Return an outcome of the contract and its message: a foreign program's own word is a failure of that name."""
    for known in get_args(Outcome):
        if outcome == known:
            return known, message
    return "failed", f"{outcome}: {message}"


def plain(record: Record) -> dict[str, Any]:
    """Return the record as it is written: flat arguments first, and only what JSON can hold.

    Where an argument has the name of a field, the field's observed value stands there. A number that is not finite
    becomes null; what no UTF-8 can hold, as undecodable bytes of a file's name, becomes an escape.
    """
    fields: dict[str, Any] = portable(msgspec.to_builtins(record))
    return {**fields.pop("arguments"), **fields}


def encode(record: Record) -> bytes:
    """Return the record's JSON, indented, as one file's content."""
    return msgspec.json.format(msgspec.json.encode(plain(record)), indent=1) + b"\n"


def portable(value: Any) -> Any:
    """Return what JSON and UTF-8 can hold of plain values: null for a number that is not finite, escapes in texts."""
    if isinstance(value, dict):
        return {portable(key): portable(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [portable(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return value
