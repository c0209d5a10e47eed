"""Records made as a launch makes them, from invented tenants: nothing runs, no clock is read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from cotenant.finding import Finding
from cotenant.findings.rules import with_findings
from cotenant.results.build import Common, Placement, Statement, build_record
from cotenant.results.record import Enclosed, Observed, Record
from cotenant.results.schema import record_schema
from cotenant.stats.tenants import Span

NOON = datetime(2026, 3, 14, 12, 0, 0, 123456, UTC)
T0_NS = 1_000_000_000_000
ARGUMENTS: dict[str, Any] = {
    "batch_size": 128,
    "number": 30,
    "repeat": 25,
    "skip": 5,
    "seed": 100,
    "workers": 0,
    "devices": 1,
    "precision": "fp32",
    "data": None,
    "report": "output",
}
ISOLATION = Enclosed(
    backend="v1",
    planned={"processors": "0", "nodes": "0", "memory_bytes": 4096, "accelerators": []},
    read_back={"processors": "0", "nodes": "0", "memory_bytes": 4096, "memory_and_swap_bytes": 4096, "pids_max": "512"},
    counters={"processor_ns": 10, "memory_peak_bytes": 2048, "pids": 3, "oom_kills": 0},
    unenforced=[],
)
VALIDATOR = jsonschema.Draft202012Validator(record_schema())


def hashes(paths: Iterable[Path]) -> dict[str, str]:
    """The SHA-256 of each file by its name, as a journal has it."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def check_schema(content: bytes) -> dict[str, Any]:
    """Return the fields of a record's file, which must obey the schema and be strict JSON."""
    fields: dict[str, Any] = msgspec.json.decode(content)  # refuses NaN and Infinity, which `json` would take
    VALIDATOR.validate(fields)
    return fields


def observed(durations_ms: Sequence[float], items: float = 3840, start_ns: int = T0_NS) -> list[Observed]:
    """Observations one after another, a tenth of a millisecond apart."""
    made = []
    for duration_ms in durations_ms:
        end_ns = start_ns + round(duration_ms * 1e6)
        made.append(Observed(start_ns, end_ns, items, data_wait_ns=1000))
        start_ns = end_ns + 100_000
    return made


def steady(seed: int = 0, mean_ms: float = 500.0) -> list[Observed]:
    """25 observations around `mean_ms`; the first 5 are to be skipped, and are slower."""
    return observed([mean_ms * (1.5 if i < 5 else 1 + ((i * 7 + seed) % 11 - 5) / 500) for i in range(25)])


def a_part(audited: bool = True, **changes: Any) -> dict[str, Any]:
    """A program's part of a record, with these changes; `audited`: our loop has watched some of its steps."""
    part = {
        "arguments": dict(ARGUMENTS),
        "item": "example",
        "version": "0123456789abcdef",
        "batch_loss": [0.5] * 100,
        "epoch_loss": [0.5] * 25,
        "losses_checked": 750,
        "observed": {"dtype": "fp32", "device": "cpu", "world_size": 1, "compiled": False},
        **changes,
    }
    return part | ({"observed": {"audit": {}} | part["observed"]} if audited else {})


def a_place(**changes: Any) -> Placement:
    fields: dict[str, Any] = {
        "suite": "baselines",
        "name": "vae",
        "run_id": 0,
        "tenant": 0,
        "tenants": 2,
        "group": "student",
        "vcd": "0",
        "hostname": "node1",
        "cpu_cores": 1,
        "devices": 0,
        "command": ["run.sh", "--repeat", "25"],
        "log": "logs/vae.R0.T0.log",
        "machine": {"model_name": "Some Processor", "accelerators": []},
        "isolation": ISOLATION,
    }
    return Placement(**fields | changes)


def a_common(load: Span = (T0_NS, T0_NS + 10**13), **changes: Any) -> Common:
    fields: dict[str, Any] = {
        "started": NOON,
        "ended": NOON + timedelta(seconds=30),
        "t0_ns": T0_NS,
        "first_start_ns": T0_NS,
        "load": load,
        "meters": {"runner_processor_share": 0.001},
    }
    return Common(**fields | changes)


def a_record(
    place: dict[str, Any] | None = None,
    told: dict[str, Any] | None = None,
    common: dict[str, Any] | None = None,
    outcome: str = "completed",
    message: str = "",
    comparable: bool = True,
) -> Record:
    """One tenant's record, with these changes to its placement, statement and common facts, and with its findings."""
    stated: dict[str, Any] = {"ready_ns": T0_NS - 50_000_000, "skip": 5, "warm_up_ns": [3, 2, 1]}
    stated |= {"observations": steady(), "part": a_part()} | (told or {})
    device = stated["part"].get("gpu")
    where = a_place(**(with_device(device) if device else {}) | (place or {}))
    made = build_record(where, Statement(**stated), a_common(**common or {}), outcome, message, comparable)
    (record,) = with_findings([made])
    return record


def with_device(name: str) -> dict[str, Any]:
    """Changes to a place that give its slice one device of this name."""
    machine = {"model_name": "Some Processor", "accelerators": [{"uuid": "GPU-0", "name": name}]}
    planned = ISOLATION.planned | {"accelerators": ["GPU-0"]}
    return {"machine": machine, "devices": 1, "isolation": msgspec.structs.replace(ISOLATION, planned=planned)}


def a_lost_record(outcome: str, message: str, place: dict[str, Any] | None = None) -> Record:
    """The record of a tenant that ended before its first observation and said nothing."""
    (record,) = with_findings([build_record(a_place(**place or {}), Statement(), a_common(), outcome, message, False)])
    return record


def rules(record: Record) -> dict[str, Finding]:
    """The record's findings by their rule."""
    return {finding.rule: finding for finding in record.findings}


def refuse(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, error: int | BaseException) -> None:
    """Let every call of this function fail from now on, with an exception or a number of `errno`."""

    def fail(*asked: object, **named: object) -> None:
        raise OSError(error, os.strerror(error)) if isinstance(error, int) else error

    monkeypatch.setattr(module, name, fail)
