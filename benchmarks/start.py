"""The second start: less than one second from `./run.sh` to the exec of the first tenant."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Promise, median_of
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
STARTS = 20
PROMISE = Promise("<", 1, "s")


def main() -> int:
    seconds = []
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        tenant = directory / "tenant.sh"
        tenant.write_text('#!/bin/sh\ndate +%s%N > "$OUTPUT_DIRECTORY/started.$JOB_ID"\n')
        tenant.chmod(0o755)
        (directory / "jobs.json").write_text(json.dumps([{"name": "clock", "cmd": "./tenant.sh", "cgroup": "student"}]))
        for _ in range(STARTS):
            begin_ns = time.time_ns()
            command = [str(ROOT / "run.sh"), "--jobs", "jobs.json", "--users", "1"]
            subprocess.run(command, cwd=directory, check=True, capture_output=True)
            started_ns = int((directory / "workspace/output/started.0").read_text())
            seconds.append((started_ns - begin_ns) / 1e9)
    one = median_of(seconds)
    table = Table("what", "median", "worst", "starts", "promise", title="The second start")
    shown = [one.shown(".3f", " s"), f"{max(seconds):.3f} s", str(one.n), PROMISE.verdict(one.value)]
    table.add_row("./run.sh to exec", *shown)
    Console(width=120).print(table)
    return 0 if PROMISE.kept(one.value) else 1


if __name__ == "__main__":
    sys.exit(main())
