"""--channels-last, --precision bf16 and --compile on every task where they apply: the rate over the plain form's.

python benchmarks/run.py forms [JOB ...] [--form NAME ...] [--pairs N]

Both forms are in one process, by turns, one thread on one processor. Compiling takes minutes for some tasks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median

from jobs import FORMS, JOBS, pictures, size, why_not
from pairs import median_of
from rich.console import Console
from rich.table import Table
from starts import StartError, end_starts_with_this, start

from cotenant.bench.outcome import outcome_of

PAIRS, LIMIT_S = 20, 900
# One job of each task: the others are the same work on more ranks, or already in 16 bit.
OF_EACH_TASK = list({job.task: name for name, job in reversed(JOBS.items())}.values())[::-1]


def cell(name: str, form: str, pairs: int) -> str:
    """Return the rate of a job's form over the plain one's and their interval, or why there is none."""
    if reason := why_not(name, form):
        return reason
    with ExitStack() as stack:
        data = ["--data", str(stack.enter_context(pictures()))] if JOBS[name].reads_pictures else []
        try:
            found = start(name, "--form", form, "--pairs", str(pairs), *data, limit_s=LIMIT_S)
        except StartError as error:
            outcome, sentence, _ = outcome_of(error)
            return f"{outcome}: {sentence}" if outcome == "unsupported" else f"FAILED: {error}"
    ours_ns, plain_ns = found["plain"]
    one = median_of([b / a for a, b in zip(ours_ns, plain_ns, strict=True)])
    step_ms = median(plain_ns) / JOBS[name].number / 1e6
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}], n {one.n}, plain {step_ms:.4g} ms"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="run.py forms")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(OF_EACH_TASK)}; all where none is named")
    parser.add_argument("--form", nargs="+", choices=FORMS, default=list(FORMS), help="only these")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    given = parser.parse_args(argv)
    if unknown := sorted(set(given.jobs) - set(OF_EACH_TASK)):
        parser.error(f"there is no job {unknown[0]}; the jobs are {', '.join(OF_EACH_TASK)}")
    table, failed = Table("job", "size", *given.form, title="Rate / the plain form's rate", show_lines=True), False
    for name in given.jobs or OF_EACH_TASK:
        print(f"{name} ...", file=sys.stderr, flush=True)
        cells = [cell(name, form, given.pairs) for form in given.form]
        failed |= any(one.startswith("FAILED") for one in cells)
        table.add_row(name, size(JOBS[name].arguments), *cells)
    Console(width=150).print(table)
    return int(failed)


if __name__ == "__main__":
    end_starts_with_this()
    sys.exit(main(sys.argv[1:]))
