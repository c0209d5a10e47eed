"""Input from files with many processes, and whose memory the pages are that a tenant pins."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from device.book import Skip
from device.jobs import JOBS, Job
from device.part import Given
from device.suite import PLENTY, entry, finished, launched
from device.task import How, TaskError, errors, in_child, measured, preload, rate
from device.tasks import keep_record

WORKERS, SMALL_WORKERS = 8, 1
BUDGET_S, SMALL_BUDGET_S = 3.0, 0.3
PINNED_MIB, SMALL_MIB = 4096, 256
SEEN = 0.5
"""Of what one tenant holds, the share by which its slice's peak has to be above the other's at least.

The rest may be pages of files, which belong to the slice that has touched them first.
"""
LOADING_S, LAUNCH_S, LIMIT_S = 8.0, 10.0, 60.0
CACHED = ("convnet",)
"""Trained from memory as well: the rate without input."""


def run(given: Given) -> None:
    given.need_torch()
    preload()
    with given.looking_at("pictures"):
        pictures = in_child(lambda: drawn(given.scratch / "pictures"), 60, given.scratch / "task.log")
        for name in ("loader", *(() if given.quick else CACHED)):
            with given.looking_at(name):
                given.need_time(LOADING_S)
                loading(given, name, JOBS[name], Path(pictures))
    with given.looking_at("pinned memory"):
        if given.quick:
            given.need_device()
        given.need_time(LAUNCH_S)
        pinned(given)


def drawn(folder: Path) -> str:
    """Draw JPEG files in class folders; in a child, so that this process keeps no threads of it."""
    from jobs import pictures

    with pictures() as train:
        shutil.copytree(train, folder)
    return str(folder)


def loading(given: Given, name: str, job: Job, pictures: Path) -> None:
    """Measure a task with its input from files, and where it trains on them from memory as well."""
    workers = SMALL_WORKERS if given.quick else WORKERS
    words = [*job.words(given), "--data", str(pictures), "--workers", str(workers)]
    rates: dict[str, float | None] = {}
    for way, more in (("from files", []), ("from memory", ["--cached-batch"])):
        if more and name not in CACHED:
            continue
        how = How.of(given, BUDGET_S, SMALL_BUDGET_S, LIMIT_S)
        try:
            record = measured(job.main, [*words, *more], how)
        except TaskError as error:
            given.check(name, False, str(error))
            return
        keep_record(given.book, name, record)
        rates[way] = rate(record)
        given.row(
            "input",
            job=name,
            way=way,
            workers=workers,
            outcome=record["outcome"],
            rate=rates[way],
            unit=f"{record.get('unit')}/s",
            waited_for_data=waited(record),
        )
        if record["outcome"] != "completed" or errors(record):
            given.check(name, False, (errors(record) or [f"{record['outcome']}: {record['message']}"])[0])
            return
    shown = ", ".join(f"{way} {value or 0:.4g}/s" for way, value in rates.items())
    given.check(name, all(rates.values()), f"With {workers} processes: {shown}.")


def waited(record: dict[str, Any]) -> float | None:
    """Return the share of the kept observations' time in which the host waited for data."""
    kept = record["observations"][record["skip"] :]
    wall = sum(seen["end_ns"] - seen["start_ns"] for seen in kept)
    return sum(seen["data_wait_ns"] for seen in kept) / wall if wall else None


def pinned(given: Given) -> None:
    """Let one of two tenants hold pinned pages (on a CPU: plain ones), and compare their slices' peaks."""
    mebibytes = SMALL_MIB if given.device == "cpu" else PINNED_MIB
    cmd = str(Path(__file__).parent / "deeds" / "run.sh")
    flags = ["--deed", "pin", "--who", "0", "--mebibytes", str(mebibytes), "--report", "$OUTPUT_DIRECTORY", "--cuda"]
    words = [*flags, *(str(word) for pair in (PLENTY | {"--repeat": 6, "--number": 5}).items() for word in pair)]
    job = entry("pinned", cmd, words)
    records = finished(launched(given.scratch / "pinned", [job], ["--users", "2"], given.left_s + 5))
    what = "pinned" if given.device != "cpu" else "plain"
    peaks: dict[int, int | None] = {}
    for record in records:
        peaks[record["tenant"]] = peak = record["isolation"]["counters"].get("memory_peak_bytes")
        given.row(
            "memory of slices",
            tenant=record["tenant"],
            holds=f"{mebibytes} MiB, {what}" if record["tenant"] == 0 else "",
            backend=record["isolation"]["backend"],
            outcome=record["outcome"],
            peak_MiB=None if peak is None else peak / 2**20,
        )
    if lost := [record for record in records if record["outcome"] != "completed"]:
        # No counter can see what a tenant never came to hold. Memory that grows as it is used makes small slices.
        sentence = f"{lost[0]['outcome']}: {lost[0]['message']}"
        if lost[0]["outcome"] == "out_of_memory":
            raise Skip(f"The slices are too small for {mebibytes} MiB of {what} pages; {sentence}")
        given.check("pinned memory", False, sentence)
        return
    if len(peaks) < 2 or None in peaks.values():
        raise Skip(f"Slices count no memory here ({records[0]['isolation']['backend']}).")
    given.check("pinned memory", *judge(peaks[0] / 2**20, peaks[1] / 2**20, mebibytes, what))


def judge(holder_mib: float, other_mib: float, held_mib: float, what: str) -> tuple[bool, str]:
    """Return whether a slice's counter sees what its tenant holds."""
    seen = holder_mib >= held_mib and holder_mib - other_mib >= SEEN * held_mib
    return seen, (
        f"The slice whose tenant holds {held_mib:.0f} MiB of {what} pages counts {holder_mib:.0f} MiB at most, "
        f"the other one {other_mib:.0f}."
    )
