"""Every task: the cost of the harness per step, and our rate over the rate of a bare loop and of other code.

python benchmarks/run.py tasks [JOB ...] [--pairs N]

Each job starts in several processes, with one thread on one processor; the pairs of all its starts are pooled.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from jobs import JOBS, Job, pictures, size
from measure import Median, median_of
from rich.console import Console
from rich.table import Table

VERSUS = Path(__file__).resolve().with_name("versus.py")
RAISED = re.compile(r"^(?:\[rank\d+\]: )?((?:\w+\.)*\w*(?:Error|Exception)\b.*)$", re.MULTILINE)
LONGEST_REASON = 300
SHORT_STEP_NS, SHORT_PAIRS = 10_000_000, 400
LEAST_PAIRS = 6  # The median of fewer values has no 95 % interval.
LEAST_RATE = 0.995
BROKEN = "BROKEN"
LIMIT_S = 600
COLUMNS = ("job", "size", "step", "harness per step", "same step, bare", "against", "other code", "pairs", "promise")


class StartError(Exception):
    """A start gave no numbers; the message is the reason."""


@dataclass(frozen=True)
class Row:
    """The measurements of one job: our rates over the rates of the other loops, and the harness in nanoseconds."""

    step_ns: float
    harness_ns: Median
    same: Median
    other: Median | None

    @property
    def verdict(self) -> str:
        """Whether the promise was kept. Long steps are judged by the harness's share: their rates are too noisy."""
        short = self.step_ns < SHORT_STEP_NS
        least = SHORT_PAIRS if short else LEAST_PAIRS
        if self.same.n < least:
            return f"open: fewer than {least} pairs"
        if self.harness_ns.value / self.step_ns > 1 - LEAST_RATE or (short and self.same.high < LEAST_RATE):
            return f"{BROKEN}: slower than a bare loop"
        return "kept" if self.other is None or self.other.high >= LEAST_RATE else f"{BROKEN}: slower than other code"


def measured(name: str, pairs: int) -> Row:
    """Return the row of a job over all its starts. Raises StartError if one of them fails."""
    job, found = JOBS[name], []
    with ExitStack() as stack:
        data = ["--data", str(stack.enter_context(pictures()))] if job.reads_pictures else []
        for index in range(job.starts):
            order = ["--other-first"] if index % 2 else []
            found.append(start(name, "--pairs", str(-(-pairs // job.starts)), *order, *data, ranks=job.ranks))
    return row_of(job, found)


def row_of(job: Job, found: Sequence[dict[str, Any]]) -> Row:
    """Return a job's row from the results of its starts."""
    return Row(
        step_ns=median(ns for one in found for ns in one["same"][0]) / job.number,
        harness_ns=median_of([ns for one in found for ns in one["harness_ns"]]),
        same=rates(found, "same"),
        other=rates(found, "other") if job.page else None,
    )


def rates(found: Sequence[dict[str, Any]], against: str) -> Median:
    """Return the median over all pairs of our rate over the other side's."""
    return median_of([b / a for one in found for a, b in zip(*one[against], strict=True)])


def start(*arguments: str, ranks: int = 1) -> dict[str, Any]:
    """Return the result of one `versus.py`. Raises StartError if it fails or takes longer than LIMIT_S."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
    with TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        command = [sys.executable, *launcher, str(VERSUS), *arguments, "--to", str(result)]
        # An empty cache, so that each start compiles its own code.
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": folder, "OMP_NUM_THREADS": "1"}
        piped: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        with subprocess.Popen(command, env=environment, start_new_session=True, **piped) as process:
            try:
                said, _ = process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                raise StartError(f"It took longer than {LIMIT_S} s.") from None
            finally:
                # The group has its ranks and compilers too.
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode or not result.exists():
            raise StartError(reason(said) or f"It ended with status {process.returncode}.")
        return json.loads(result.read_text())


def reason(said: str) -> str:
    """Return the first error that a process has named, or its last line."""
    raised = RAISED.search(said)
    lines = said.strip().splitlines() or [""]
    return (raised[1] if raised else lines[-1])[:LONGEST_REASON]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="run.py tasks")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(JOBS)}; all where none is named")
    parser.add_argument("--pairs", type=int, help="instead of each job's own number, a few to try")
    given = parser.parse_args(argv)
    if unknown := sorted(set(given.jobs) - set(JOBS)):
        parser.error(f"there is no job {unknown[0]}; the jobs are {', '.join(JOBS)}")
    # So that a running `versus.py` is killed too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    table, failed = Table(*COLUMNS, title="Every task: rate / the rate of other code for the same work"), False
    for name in given.jobs or JOBS:
        job = JOBS[name]
        print(f"{name} ...", file=sys.stderr, flush=True)
        place = f"{'public' if job.model else 'by_hand'}/{job.page}" if job.page else ""
        try:
            row = measured(name, given.pairs or job.pairs)
        except StartError as error:
            missing = job.model and str(error).startswith("ModuleNotFoundError")
            failed |= not missing
            word = "left out" if missing else "FAILED"
            table.add_row(name, size(job), "", "", "", place, "", "", f"{word}: {error}")
            continue
        failed |= row.verdict.startswith(BROKEN)
        harness = f"{row.harness_ns.value:.0f} ns, {row.harness_ns.value / row.step_ns:.2g}"
        other = row.other.shown() if row.other else ""
        step = f"{row.step_ns / 1e6:.4g} ms"
        table.add_row(name, size(job), step, harness, row.same.shown(), place, other, str(row.same.n), row.verdict)
    Console(width=170).print(table)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
