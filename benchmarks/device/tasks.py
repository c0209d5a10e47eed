"""Every task, on a resident batch, alone: it completes, without an error, in the precision that was asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from device.book import FAIL, PASS, SKIP, Book
from device.jobs import JOBS, SMALL, Job
from device.part import Given
from device.task import How, TaskError, errors, measured, preload, rate

BUDGET_S, SMALL_BUDGET_S = 3.0, 0.3
LIMIT_S = 40.0
USUAL_S = 6.0
"""What a task takes on a device with its start and its end."""
SKIPPED_OUTCOMES = ("missing_package", "unsupported")
LOADING = ("loader",)
"""Measured in the part `input`, with files."""


def run(given: Given) -> None:
    given.need_torch()
    preload(vision=not given.quick)
    for name, job in JOBS.items():
        if name in LOADING or (given.quick and name not in SMALL):
            continue
        with given.looking_at(name):
            given.need_time(USUAL_S if not given.quick else 2.0)
            task(given, name, job)


def task(given: Given, name: str, job: Job) -> None:
    if not Path(job.main).exists():
        given.skip(name, "There is no such task yet.")
        return
    how = How.of(given, BUDGET_S, SMALL_BUDGET_S, LIMIT_S, beyond_s=10)
    try:
        record = measured(job.main, job.words(given), how)
    except TaskError as error:
        given.row("tasks", task=name, outcome="no record", reason=str(error))
        given.check(name, False, str(error))
        return
    keep_record(given.book, name, record)
    verdict, sentence = judge(job, record)
    given.row("tasks", task=name, **columns(record))
    if verdict == SKIP:
        given.skip(name, sentence)
    else:
        given.check(name, verdict == PASS, sentence)


def columns(record: dict[str, Any]) -> dict[str, Any]:
    """Return what the page shows of a record."""
    meters = record.get("meters") or {}
    compute = meters.get("compute") or {}
    observed = record.get("observed") or {}
    kept = record.get("observations", [])[record.get("skip") or 0 :]
    return {
        "outcome": record["outcome"],
        "rate": rate(record),
        "unit": f"{record.get('unit', 'item')}/s",
        "dtype": observed.get("dtype"),
        "device": observed.get("device"),
        "observations": len(kept),
        "seconds": sum(seen["end_ns"] - seen["start_ns"] for seen in kept) / 1e9,
        "mfu": compute.get("mfu"),
        "peak_memory_MiB": _mebibytes(meters.get("device_memory")),
        "findings": ", ".join(finding["rule"] for finding in record.get("findings", ())),
    }


def judge(job: Job, record: dict[str, Any]) -> tuple[str, str]:
    """Return PASS, FAIL or SKIP for a task's record, and the sentence."""
    if record["outcome"] in SKIPPED_OUTCOMES:
        return SKIP, record["message"]
    if record["outcome"] != "completed":
        return FAIL, f"{record['outcome']}: {record['message']}"
    if wrong := errors(record):
        return FAIL, wrong[0]
    compute = (record.get("meters") or {}).get("compute") or {}
    # Convolutions may take fewer products than are counted: `mfu_least` is what they take at least.
    mfu = compute.get("mfu_least", compute.get("mfu"))
    if mfu is not None and mfu > 1:
        return FAIL, f"Its rate is {mfu:.2f} times what the device can do."
    dtype = record["observed"]["dtype"]
    if job.precision in ("bf16", "fp16") and dtype != job.precision:
        return FAIL, f"{job.precision} was asked for, and {dtype} ran."
    speed = rate(record)
    if speed is None:
        return FAIL, "It has no observation that counts."
    return PASS, f"{speed:.4g} {record.get('unit', 'item')}/s."


def keep_record(book: Book, name: str, record: dict[str, Any]) -> None:
    """Append a record to records.jsonl: fixtures for readers are made of it."""
    with (book.folder / "records.jsonl").open("a") as file:
        file.write(json.dumps({"job": name, **record}, default=str) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _mebibytes(memory: dict[str, Any] | None) -> float | None:
    return None if not memory else memory.get("allocated_bytes", 0) / 2**20
