"""Neighbours of known pressure on a device: half a level is half of what is achieved, and a job keeps less beside one.

A run of its own (`--parts pressure`).
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from device.jobs import JOBS, Job
from device.part import Given
from device.suite import finished, job_entry, launched
from device.task import How, errors, measured, preload
from device.tasks import keep_record

BUDGET_S, SMALL_BUDGET_S, LIMIT_S, LAUNCHES_S = 3.0, 2.0, 40.0, 40.0
HALF, FULL = 50, 100
LEVELS = ("--level", f"{HALF} {FULL}", "--skip", "0")
LEAST, MOST = 0.4, 0.6
"""What half a level achieves of a whole one. On a shared processor whoever always works loses more to others."""
ON_PROCESSORS = 0.2, 0.9
JOB = "vae"


def run(given: Given) -> None:
    given.need_torch()
    preload(vision=False)
    from cotenant.suite.pressure import OF_DEVICES

    resources = ("cpu",) if given.device == "cpu" else OF_DEVICES
    for resource in resources:
        with given.looking_at(resource):
            given.need_time(2 * BUDGET_S)
            alone(given, resource)
    for resource in resources:
        with given.looking_at(f"{JOB} beside {resource}"):
            given.need_time(LAUNCHES_S)
            beside(given, resource)


def alone(given: Given, resource: str) -> None:
    """Measure a neighbour without anybody beside it, at half a level and at a whole one."""
    how = How.of(given, BUDGET_S, SMALL_BUDGET_S, LIMIT_S)
    record = measured(Job(f"pressure/{resource}").main, LEVELS, how)
    keep_record(given.book, resource, record)
    if record["outcome"] != "completed" or errors(record):
        given.check(resource, False, "; ".join(errors(record)) or f"{record['outcome']}: {record['message']}")
        return
    rates = rates_of(record)
    given.row("achieved", resource=resource, unit=f"{record['unit']}/s", half=rates[HALF], full=rates[FULL])
    given.check(resource, *judge(rates, record["unit"], *((LEAST, MOST) if given.device != "cpu" else ON_PROCESSORS)))


def rates_of(record: dict[str, Any]) -> dict[int, float]:
    """Return the median rate of each level, in items per second."""
    rates: dict[int, list[float]] = {}
    for level, seen in zip(record["observed"]["levels"], record["observations"], strict=False):
        rates.setdefault(level, []).append(seen["items"] * 1e9 / (seen["end_ns"] - seen["start_ns"]))
    return {level: median(values) for level, values in rates.items()}


def judge(rates: dict[int, float], unit: str, least: float, most: float) -> tuple[bool, str]:
    """Return whether half a level achieves about half of a whole one."""
    share = rates[HALF] / rates[FULL] if rates[FULL] > 0 else 0.0
    return least <= share <= most, f"{rates[FULL]:.4g} {unit}/s, and {share:.2f} of it at half a level."


def beside(given: Given, resource: str) -> None:
    """Launch a job, and a probe, beside a neighbour that rests and works in turns; both on one device."""
    curves = {"name": "curves", "sense": [JOB], "pressure": [f"{resource}:0,{FULL}"], "block_s": 1}
    flags = ["--name", "curves", "--users", "2", *([] if given.device == "cpu" else ["--share", "time"])]
    jobs = [job_entry(JOB, JOBS[JOB], given), curves]
    records = finished(launched(given.scratch / f"beside-{resource}", jobs, flags, given.left_s + 5))
    for record in records:
        keep_record(given.book, f"{JOB} beside {resource}", record)
    kept = kept_of(records)
    for name, share in kept.items():
        given.row("kept", job=name, resource=resource, share=share)
    lost = [f"{record['outcome']}: {record['message']}" for record in records if record["outcome"] != "completed"]
    wrong = [*lost, *(sentence for record in records for sentence in errors(record))]
    shares = ", ".join(f"{name} {share:.2f}" for name, share in kept.items())
    sentence = wrong[0] if wrong else f"They keep {shares or 'none'}."
    given.check(f"{JOB} beside {resource}", len(kept) == 2 and not wrong, sentence)


def kept_of(records: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return what each job keeps of its rate beside a whole level: medians over rounds."""
    kept = {}
    for record in records:
        blocks = ((record.get("meters") or {}).get("pressure") or {}).get("blocks", ())
        rates = [
            [block["rate"] for block in blocks if block["level"] == level and block["rate"]] for level in (0, FULL)
        ]
        if all(rates):
            kept[record["name"]] = median(rates[1]) / median(rates[0])
    return kept
