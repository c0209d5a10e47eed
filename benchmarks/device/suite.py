"""Launches of several tenants, by the runner as users start it, in a scratch folder and under a limit of time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from device.book import Skip
from device.jobs import Job
from device.part import ROOT, Given, environment

PLENTY = {"--number": 1_000_000, "--repeat": 12, "--skip": 2}
POLITE_S = 10.0


class SuiteError(Exception):
    """A suite that left no records; says why."""


def own_base() -> str:
    """Return the name of this run's control groups, by the process that runs all parts."""
    return f"cotenant-gpu-{os.getppid()}"


def entry(name: str, cmd: str, words: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return an entry of a job file; the words of a command line are its arguments."""
    args: dict[str, Any] = {}
    for word in words:
        if word.startswith("-"):
            args[flag := word] = ""
        else:
            args[flag] = word
    return {"name": name, "cmd": cmd, "args": args, "cgroup": "student", **more}


def job_entry(name: str, job: Job, given: Given) -> dict[str, Any]:
    """Return a job that measures as long as a budget lets it."""
    words = [*job.words(given), *(str(word) for pair in PLENTY.items() for word in pair)]
    device = [] if {"--cuda", "--no-cuda"} & set(words) else ["--cuda"]
    cmd = str(Path(job.main).with_name("run.sh"))
    return entry(name, cmd, [*words, "--report", "$OUTPUT_DIRECTORY", *device])


def launched(
    folder: Path, jobs: Sequence[Mapping[str, Any]], flags: Sequence[str], limit_s: float
) -> list[dict[str, Any]]:
    """Run jobs and return all their records, failed ones among them. Raises SuiteError where there are none."""
    folder.mkdir(parents=True)
    (folder / "jobs.json").write_text(json.dumps(list(jobs)))
    # What is measured is the budget, or as many observations as a job says: of short ones ten seconds are thousands.
    flags = [*flags, "--cgroup-base", own_base(), "--settle", "0", "--at-least", "0"]
    command = [sys.executable, str(ROOT / "run.py"), "--jobs", "jobs.json", *flags]
    with (folder / "output").open("w+") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment() | {"BASE": str(folder / "workspace")},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            status: int | str = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = f"at its limit of {limit_s:.0f} s"
        finally:
            # So it ends its tenants and removes their groups.
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(POLITE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        output.seek(0)
        text = output.read()
    print(text[-4000:], flush=True)
    records = [
        json.loads(path.read_text()) for path in sorted((folder / "workspace" / "output").glob("jobs.*.R0.D*.json"))
    ]
    if not records:
        raise SuiteError(f"The runner ended ({status}) without a record: {last(text)}")
    return records


def last(text: str) -> str:
    """Return the last line with words."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it wrote nothing"


def finished(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of a launch. Raises Skip where a part's time was over before its tenants were done."""
    if any(record["outcome"] == "interrupted" for record in records):
        raise Skip("No time was left for its end.")
    return records
