"""Promise 2 on every task: the cost of the harness per step, and our rate over that of a loop written by hand.

python benchmarks/run.py tasks [JOB ...] [--pairs N]

Each job starts in several processes, with one thread on one processor. The side that is built first alternates, since
the layout of memory affects speed. The pairs of all starts of a job are pooled.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any

from jobs import JOBS, Job, pictures, size
from pairs import Median, median_of
from rich.console import Console
from rich.table import Table
from starts import StartError, end_starts_with_this, start

SHORT_STEP_NS, SHORT_PAIRS = 10_000_000, 400
LEAST_PAIRS = 6  # The median of fewer values has no 95 % interval.
LEAST_RATE = 0.995
BROKEN = "BROKEN"
LIMIT_S = 600
COLUMNS = ("job", "size", "step", "harness per step", "same step, bare", "by hand", "pairs", "promise")


@dataclass(frozen=True)
class Row:
    """The measurements of one job: our rates over those of the other loops, and the harness in nanoseconds."""

    step_ns: float
    harness_ns: Median
    same: Median
    hand: Median

    @property
    def share(self) -> float:
        """The harness's part of a step."""
        return self.harness_ns.value / self.step_ns

    @property
    def verdict(self) -> str:
        """Whether the promise was kept. Long steps are judged by the harness's share: their rates are too noisy."""
        short = self.step_ns < SHORT_STEP_NS
        least = SHORT_PAIRS if short else LEAST_PAIRS
        if min(self.same.n, self.hand.n) < least:
            return f"open: fewer than {least} pairs"
        if self.share > 1 - LEAST_RATE or (short and self.same.high < LEAST_RATE):
            return f"{BROKEN}: slower than a bare loop"
        return "kept" if self.hand.high >= LEAST_RATE else f"{BROKEN}: slower than by hand"


def measured(name: str, pairs: int) -> Row:
    """Return the row of a job over all its starts. Raises StartError if one of them fails."""
    job, found = JOBS[name], []
    with ExitStack() as stack:
        data = ["--data", str(stack.enter_context(pictures()))] if job.reads_pictures else []
        for index in range(job.starts):
            order = ["--hand-first"] if index % 2 else []
            count = ["--pairs", str(-(-pairs // job.starts))]
            found.append(start(name, *count, *order, *data, ranks=job.ranks, limit_s=LIMIT_S))
    return row_of(job, found)


def row_of(job: Job, found: Sequence[dict[str, Any]]) -> Row:
    """Return a job's row from the results of its starts."""
    ours_ns = [ns for one in found for against in ("hand", "same") for ns in one[against][0]]
    return Row(
        step_ns=median(ours_ns) / job.number,
        harness_ns=median_of([ns for one in found for ns in one["harness_ns"]]),
        same=rates(found, "same"),
        hand=rates(found, "hand"),
    )


def rates(found: Sequence[dict[str, Any]], against: str) -> Median:
    """Return the median over all pairs of our rate over the other side's."""
    return median_of([b / a for one in found for a, b in zip(*one[against], strict=True)])


def shown(one: Median) -> str:
    return f"{one.value:.4f} [{one.low:.4f}, {one.high:.4f}]"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="run.py tasks")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(JOBS)}; all where none is named")
    parser.add_argument("--pairs", type=int, help="instead of each job's own number, a few to try")
    given = parser.parse_args(argv)
    if unknown := sorted(set(given.jobs) - set(JOBS)):
        parser.error(f"there is no job {unknown[0]}; the jobs are {', '.join(JOBS)}")
    table, failed = Table(*COLUMNS, title="Every task: rate / the rate of other loops around the same work"), False
    for name in given.jobs or JOBS:
        job = JOBS[name]
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            row = measured(name, given.pairs or job.pairs)
        except StartError as error:
            failed = True
            table.add_row(name, size(job.arguments, job.ranks), "", "", "", "", "", f"FAILED: {error}")
            continue
        failed |= row.verdict.startswith(BROKEN)
        harness = f"{row.harness_ns.value:.0f} ns, {row.share:.2g}".replace("e-0", "e-")
        step = f"{row.step_ns / 1e6:.4g} ms"
        table.add_row(
            name,
            size(job.arguments, job.ranks),
            step,
            harness,
            shown(row.same),
            shown(row.hand),
            str(row.hand.n),
            row.verdict,
        )
    Console(width=150).print(table)
    return int(failed)


if __name__ == "__main__":
    end_starts_with_this()
    sys.exit(main(sys.argv[1:]))
