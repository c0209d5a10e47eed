"""Running suites from a benchmark: write a job file, start run.py on it, read its records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REPORT = {"--report": "$OUTPUT_DIRECTORY", "--cuda": ""}

TOY_REG = {"--repeat": 20, "--number": 100, "--batch-size": 256, **REPORT}
VAE = {"--repeat": 20, "--number": 30, "--batch-size": 128, **REPORT}
COMMANDS = {
    "toy_reg": "./regression/polynome/pytorch/run.sh",
    "toy_lstm": "./time_sequence_prediction/lstm/pytorch/run.sh",
    "vae": "./variational_auto_encoder/auto_encoding_variational_bayes/pytorch/run.sh",
}


def job(name: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "cmd": COMMANDS[name], "args": args, "cgroup": "student"}


def run_suite(directory: Path, jobs: list[dict[str, Any]], *flags: str, may_fail: bool = False) -> list[dict[str, Any]]:
    """Run the jobs in `directory` and return their records. Raises RuntimeError if one does not pass."""
    directory.mkdir(parents=True)
    (directory / "jobs.json").write_text(json.dumps(jobs))
    # The case without slices must not inherit our limits of threads, which a user's shell lacks.
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    environment["BASE"] = str(directory / "workspace")
    baseline = () if "--baseline" in flags else ("--baseline", "none")
    command = [sys.executable, str(ROOT / "run.py"), "--jobs", "jobs.json", *baseline, *flags]
    ended = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode > may_fail:
        raise RuntimeError(ended.stdout + ended.stderr)
    output = Path(environment["BASE"], "output")
    return [json.loads(path.read_text()) for path in sorted(output.glob("jobs.*.R0.D*.json"))]
