"""A machine with a device, this one or one that is pretended: programs and suites on it, and what they leave."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BASE = "cotenant-test-device"
"""The name of the cgroups that suites make here."""
DRIVER = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release"
DRIVERS_SIGN = (
    *("unshare", "--mount", "--propagation", "private", "sh", "-c"),
    f"""mount -t tmpfs none /proc/driver && mkdir /proc/driver/nvidia &&
    echo '{DRIVER}' >/proc/driver/nvidia/version && exec "$@\"""",
    "sh",
)
"""Stands before a command that is to see NVIDIA's driver in /proc, in a mount namespace of its own."""
USAGE = 2
QUICK = ("--baseline", "none", "--settle", "0", "--at-least", "0")
PLENTY = {"--number": 1_000_000, "--repeat": 12, "--skip": 4}
"""As many as a budget allows; eight kept observations are enough for an interval."""
FEW = PLENTY | {"--number": 10}
"""On a null device: as many steps as it takes, however slow they are, for the one at which something happens."""
Record = dict[str, Any]


@dataclass(frozen=True)
class Host:
    """`before` stands before each command line, `variables` in its environment; records and logs go below `results`."""

    results: Path
    null: bool
    before: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)

    def asked(self, program: str, *words: object) -> Any:
        """Return what a file of programs/ prints in its last line, which is JSON."""
        line = [*self.before, sys.executable, str(HERE / "programs" / f"{program}.py"), *map(str, words)]
        done = subprocess.run(line, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{program} ended with {done.returncode}: {done.stderr[-2000:]}"
        return json.loads(done.stdout.splitlines()[-1])

    def suite(
        self, name: str, jobs: str | Sequence[Record], *flags: object, limit_s: float = 100.0, **variables: str
    ) -> list[Record]:
        """Run these jobs, or one of a job file of ours with its name, and return the records by job and tenant.

        What the runner refuses on a real device is skipped with its words; what is left at the limit its reaper ends.
        """
        folder = self.results / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if not isinstance(jobs, str):
            jobs, own = str(self.results / f"{name}.jobs.json"), jobs
            Path(jobs).write_text(json.dumps(own))
        line = [*self.before, sys.executable, str(ROOT / "run.py"), "--cgroup-base", BASE, "--outdir", str(folder)]
        # Its processes share the memory and the time of pretended devices.
        shared = {"COTENANT_LOCK": str(self.results / "lock"), "NULL_DEVICE_SHARED": str(folder / "devices")}
        with (folder / "printed.txt").open("w") as printed:
            status = subprocess.run(
                [*line, *QUICK, "--jobs", jobs, *map(str, flags)],
                cwd=ROOT,
                env=self.environment | shared | variables,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                timeout=limit_s,
                check=False,
            ).returncode
        if status == USAGE and not self.null:
            pytest.skip(f"The runner refuses it here: {self.printed(name)[-1]}")
        records = [json.loads(path.read_text()) for path in folder.glob("*.R0.D*.json")]
        assert records, f"The runner ended with {status} and left no record: {self.printed(name)[-20:]}"
        return sorted(records, key=lambda record: (record["name"], record["tenant"]))

    def printed(self, name: str) -> list[str]:
        """Return the lines that a suite has printed."""
        return (self.results / name / "printed.txt").read_text().strip().splitlines()

    def wrong(self, records: Sequence[Record]) -> list[str]:
        """Return a sentence on each that did not complete, or is INVALID by more than kernels that compute nothing."""
        lost = [f"{r['name']} {r['outcome']}: {r['message']}" for r in records if r["outcome"] != "completed"]
        errors = [f["sentence"] for r in records for f in r["findings"] if f["severity"] == "error"]
        return lost if self.null else lost + errors

    @property
    def amount(self) -> dict[str, int]:
        """How much a job measures."""
        return FEW if self.null else PLENTY

    @property
    def budget(self) -> tuple[str, ...]:
        """The flag for it."""
        return () if self.null else ("--budget", "2s")

    @property
    def environment(self) -> dict[str, str]:
        """The variables of all that runs on it."""
        path = os.pathsep.join(filter(None, [str(ROOT / "common"), os.environ.get("PYTHONPATH")]))
        return os.environ | {"PYTHONPATH": path, "BASE": str(self.results / "base")} | self.variables


def entry(name: str, script: Path | str, words: dict[str, Any]) -> Record:
    """Return a job of a script of ours; one that is named lies below tasks/."""
    cmd = script if isinstance(script, Path) else ROOT / "tasks" / script / "pytorch/run.sh"
    args = words | {"--cuda": "", "--report": "$OUTPUT_DIRECTORY"}
    return {"name": name, "cmd": str(cmd), "cgroup": "student", "args": args}


def deed(name: str, words: dict[str, Any], who: int = 0) -> Record:
    """Return a job of which this tenant does something to the others, or to its slice (deeds/main.py)."""
    return entry(name, HERE / "deeds" / "run.sh", {"--deed": name, "--who": who} | words)


def rate(record: Record) -> float:
    """Return the median rate of the kept observations, in items per second; 0 without any."""
    return float(record["statistics"]["median"]) if record.get("statistics") else 0.0
