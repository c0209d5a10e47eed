"""A machine with a real device or the null device: runs programs and suites there, and reads their records."""

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

from patience import HANG_S

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BASE = "cotenant-test-device"
"""Name that the cgroups of these tests' suites begin with."""
DRIVER = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release"
DRIVERS_SIGN = (
    *("unshare", "--mount", "--propagation", "private", "sh", "-c"),
    f"""mount -t tmpfs none /proc/driver && mkdir /proc/driver/nvidia &&
    echo '{DRIVER}' >/proc/driver/nvidia/version && exec "$@\"""",
    "sh",
)
"""Beginning of a command line that is to see NVIDIA's driver in /proc: the command runs in its own mount namespace."""
USAGE = 2
QUICK = ("--baseline", "none", "--settle", "0", "--at-least", "0")
PLENTY = {"--number": 1_000_000, "--repeat": 12, "--skip": 4}
"""More batches in an observation than a budget allows; eight kept observations are enough for an interval."""
FEW = PLENTY | {"--number": 10}
"""Amount on the null device, without a budget: 120 steps, so that a deed at step 51 happens however slow steps are."""
Record = dict[str, Any]


@dataclass(frozen=True)
class Host:
    """Commands begin with `before` and have `variables` in their environment; records and logs go below `results`."""

    results: Path
    null: bool
    before: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)

    def asked(self, program: str, *words: object) -> Any:
        """Return the value of the last line, which is JSON, that a file of programs/ prints."""
        line = [*self.before, sys.executable, str(HERE / "programs" / f"{program}.py"), *map(str, words)]
        done = subprocess.run(line, env=self.environment, capture_output=True, text=True, timeout=HANG_S, check=False)
        assert done.returncode == 0, f"{program} ended with {done.returncode}: {done.stderr[-2000:]}"
        return json.loads(done.stdout.splitlines()[-1])

    def suite(
        self, name: str, jobs: str | Sequence[Record], *flags: object, limit_s: float = 100.0, **variables: str
    ) -> list[Record]:
        """Run these jobs, or a job file that is named, and return the records sorted by job and tenant.

        The test is skipped where the runner refuses the suite on a real device. After `limit_s` the runner is killed,
        and its reaper ends the tenants that are left.
        """
        folder = self.results / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if not isinstance(jobs, str):
            jobs, own = str(self.results / f"{name}.jobs.json"), jobs
            Path(jobs).write_text(json.dumps(own))
        line = [*self.before, sys.executable, str(ROOT / "run.py"), "--cgroup-base", BASE, "--outdir", str(folder)]
        # The suite's processes share the memory and the time of the null devices.
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
        """Return a sentence on each record that did not complete, and on a real device each error among its findings.

        Errors are not counted on the null device, whose kernels compute nothing.
        """
        lost = [f"{r['name']} {r['outcome']}: {r['message']}" for r in records if r["outcome"] != "completed"]
        errors = [f["sentence"] for r in records for f in r["findings"] if f["severity"] == "error"]
        return lost if self.null else lost + errors

    @property
    def amount(self) -> dict[str, int]:
        """Flags of the amount that a job measures."""
        return FEW if self.null else PLENTY

    @property
    def budget(self) -> tuple[str, ...]:
        """Flags of the budget that ends a job on a real device."""
        return () if self.null else ("--budget", "2s")

    @property
    def environment(self) -> dict[str, str]:
        """Environment of every program that runs on this machine."""
        path = os.pathsep.join(filter(None, [str(ROOT / "common"), os.environ.get("PYTHONPATH")]))
        return os.environ | {"PYTHONPATH": path, "BASE": str(self.results / "base")} | self.variables


def entry(name: str, script: Path | str, words: dict[str, Any]) -> Record:
    """Return a job that runs a script: a path, or the name of a folder below tasks/."""
    cmd = script if isinstance(script, Path) else ROOT / "tasks" / script / "pytorch/run.sh"
    args = words | {"--cuda": "", "--report": "$OUTPUT_DIRECTORY"}
    return {"name": name, "cmd": str(cmd), "cgroup": "student", "args": args}


def deed(name: str, words: dict[str, Any], who: int = 0) -> Record:
    """Return a job whose tenant `who` does a deed of deeds/main.py to the other tenants or to its slice."""
    return entry(name, HERE / "deeds" / "run.sh", {"--deed": name, "--who": who} | words)


def rate(record: Record) -> float:
    """Return the median rate of the kept observations, in items per second; 0 without any."""
    return float(record["statistics"]["median"]) if record.get("statistics") else 0.0
