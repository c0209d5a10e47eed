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

from cotenant.confidential import by_new_key
from cotenant.finding import Finding
from cotenant.findings.rules import with_findings
from cotenant.results.build import build_record, load_of
from cotenant.results.record import Attested, Enclosed, Meeting, Observed, Record, known_outcome, rated, record_name
from cotenant.results.schema import record_schema
from cotenant.results.told import tenant_part
from cotenant.stats.tenants import Span, overlap

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


def attested(**changes: Any) -> Attested:
    """The runner's facts of one tenant, with these changes; `name` is that of its cell."""
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
        "outcome": "completed",
        "message": "",
        "comparable": True,
        "skip": 0,
        "asked": None,
        "given": None,
        "observations": [],
        "rank_observations": {},
        "rendezvous": None,
        "meters": {"runner_processor_share": 0.001},
        "findings": [],
    } | changes
    suite_started, started = fields.pop("suite_started", None), fields.pop("started", NOON)
    ended = fields.pop("ended", NOON + timedelta(seconds=30))
    fields |= {"start_time": started.isoformat(), "end_time": ended.isoformat()}
    fields["suite_start_time"] = suite_started.isoformat() if suite_started else ""
    fields["name"] = record_name(fields["name"], fields.get("solo", False), fields.get("mix", ""))
    return Attested(**fields)


def met(told: dict[str, Any], load: Span) -> Meeting | None:
    """The meeting of a tenant with others, whose common load this is; its fields are taken out of what it `told`."""
    said = {"warm_up_ns": [3, 2, 1]} | {name: told.pop(name) for name in ("warm_up_ns", "late_ns") if name in told}
    rows, measured = told["observations"], rated(told["observations"], told["skip"])
    if not measured:
        return None
    start_ns, end_ns = load_of(rows, tenant_part(told["part"]), stop_ns=0)
    inside = overlap([(row.start_ns, row.end_ns) for row in measured], load)
    return Meeting(T0_NS - 50_000_000, T0_NS, start_ns, end_ns, inside, start_ns - T0_NS, **said)


def a_record(
    place: dict[str, Any] | None = None,
    told: dict[str, Any] | None = None,
    common: dict[str, Any] | None = None,
    outcome: str = "completed",
    message: str = "",
    comparable: bool = True,
) -> Record:
    """One tenant's record, with these changes to its placement, its part and observations, and the launch's facts."""
    told = {"skip": 5, "observations": steady(), "part": a_part()} | (told or {})
    common = {"rendezvous": met(told, (common or {}).get("load", (T0_NS, T0_NS + 10**13)))} | (common or {})
    common.pop("load", None)
    conceal = common.pop("conceal", by_new_key())
    part, kept = told.pop("part"), {name: told.pop(name) for name in ("kept",) if name in told}
    where = (with_device(part["gpu"]) if part.get("gpu") else {}) | (place or {})
    ended = dict(zip(("outcome", "message"), known_outcome(outcome, message), strict=True)) | {"comparable": comparable}
    made = build_record(attested(**where | told | common | ended), tenant_part(part), conceal)
    (record,) = with_findings([msgspec.structs.replace(made, **kept)])
    return record


def with_device(name: str) -> dict[str, Any]:
    """Changes to a place that give its slice one device of this name."""
    machine = {"model_name": "Some Processor", "accelerators": [{"uuid": "GPU-0", "name": name}]}
    planned = ISOLATION.planned | {"accelerators": ["GPU-0"]}
    return {"machine": machine, "devices": 1, "isolation": msgspec.structs.replace(ISOLATION, planned=planned)}


def a_lost_record(outcome: str, message: str, place: dict[str, Any] | None = None) -> Record:
    """The record of a tenant that ended before its first observation and said nothing."""
    return a_record(place, {"skip": 0, "observations": [], "part": {}}, None, outcome, message, comparable=False)


def rules(record: Record) -> dict[str, Finding]:
    """The record's findings by their rule."""
    return {finding.rule: finding for finding in record.findings}


def refuse(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, error: int | BaseException) -> None:
    """Let every call of this function fail from now on, with an exception or a number of `errno`."""

    def fail(*asked: object, **named: object) -> None:
        raise OSError(error, os.strerror(error)) if isinstance(error, int) else error

    monkeypatch.setattr(module, name, fail)
