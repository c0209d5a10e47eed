"""A machine with a device, this one or one that is pretended: programs and suites on it, and what they leave."""

from __future__ import annotations

import json
import os
import shutil
import signal
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
POLITE_S = 10.0
QUICK = ("--baseline", "none", "--settle", "0", "--at-least", "0")
PLENTY = {"--number": 1_000_000, "--repeat": 12, "--skip": 4}
"""As many as a budget allows; eight kept observations are enough for an interval."""
FEW = PLENTY | {"--number": 10}
"""On a null device: as many steps as it takes, however slow they are, for the one at which something happens."""


@dataclass(frozen=True)
class Host:
    """`before` stands before each command line, `variables` in its environment; records and logs go below `results`."""

    results: Path
    null: bool
    before: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)

    def asked(self, program: str, *words: object, limit_s: float = 60.0, **variables: str) -> Any:
        """Return what a file of programs/ prints in its last line, which is JSON."""
        line = [*self.before, sys.executable, str(HERE / "programs" / f"{program}.py"), *map(str, words)]
        environ = self._environment | variables
        done = subprocess.run(line, env=environ, capture_output=True, text=True, timeout=limit_s, check=False)
        assert done.returncode == 0, f"{program} ended with {done.returncode}: {done.stderr[-2000:]}"
        return json.loads(done.stdout.splitlines()[-1])

    def suite(
        self, name: str, flags: Sequence[object], words: Sequence[object] = (), limit_s: float = 100.0, **variables: str
    ) -> list[dict[str, Any]]:
        """Run a suite and return its records by tenant; skip what the runner refuses on a real one, with its words."""
        folder = self.results / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        line = [*self.before, sys.executable, str(ROOT / "run.py"), "--cgroup-base", BASE, "--outdir", str(folder)]
        line += [*QUICK, *map(str, flags), *(["--", *map(str, words)] if words else [])]
        # The parts of a run that were killed at its limit are ended by its reaper.
        with (folder / "printed.txt").open("w+") as printed:
            process = subprocess.Popen(
                line,
                cwd=ROOT,
                env=self._environment | variables | {"COTENANT_LOCK": str(self.results / "lock")},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )
            try:
                status = process.wait(limit_s)
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
                    _end(process)
            printed.seek(0)
            text = printed.read()
        if status == USAGE and not self.null:
            pytest.skip(f"The runner refuses it here: {text.strip().splitlines()[-1]}")
        records = [json.loads(path.read_text()) for path in folder.glob("*.R0.D*.json")]
        assert records, f"The runner ended with {status} and left no record: {text[-2000:]}"
        return sorted(records, key=lambda record: (record["name"], record["tenant"]))

    def jobs(self, name: str, jobs: Sequence[dict[str, Any]]) -> Path:
        """Write a job file and return its path."""
        path = self.results / f"{name}.jobs.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(jobs))
        return path

    @property
    def amount(self) -> dict[str, int]:
        """How much a job measures."""
        return FEW if self.null else PLENTY

    @property
    def budget(self) -> tuple[str, ...]:
        """The flag for it."""
        return () if self.null else ("--budget", "2s")

    @property
    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [str(ROOT / "common"), os.environ.get("PYTHONPATH")]))
        base = {"PYTHONPATH": path, "BASE": str(self.results / "base")}
        return os.environ | base | self.variables


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(POLITE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def entry(name: str, cmd: Path, words: dict[str, Any]) -> dict[str, Any]:
    """Return a job of a file of ours."""
    return {"name": name, "cmd": str(cmd), "cgroup": "student", "args": words | {"--report": "$OUTPUT_DIRECTORY"}}


def deed(name: str, amount: dict[str, int], mebibytes: int = 1024) -> dict[str, Any]:
    """Return a job whose tenant 0 does this to the others, or to its slice (deeds/main.py)."""
    asked = {"--deed": name, "--who": 0, "--mebibytes": mebibytes, "--cuda": ""} | amount
    return entry(name, HERE / "deeds" / "run.sh", asked)


def rate(record: dict[str, Any]) -> float | None:
    """Return the median rate of the kept observations, in items per second; None without any."""
    return None if not record.get("statistics") else float(record["statistics"]["median"])


def wrong(records: Sequence[dict[str, Any]]) -> list[str]:
    """Return the sentences on what of a launch did not complete, or is INVALID."""
    lost = [f"{r['name']} {r['outcome']}: {r['message']}" for r in records if r["outcome"] != "completed"]
    return lost + [f["sentence"] for r in records for f in r["findings"] if f["severity"] == "error"]
