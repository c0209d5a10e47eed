"""The time of an audit step, beside a step of the same task and as a share of a launch by blocks of two users.

python benchmarks/run.py audit [JOB ...] [--times N]

One thread on one processor. docs/method.md explains the audit; its time includes a garbage collection.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from statistics import median

from jobs import JOBS, pictures
from rich.console import Console
from rich.table import Table
from sides import benchmark_of, one_processor

from cotenant.bench import Run
from cotenant.bench.loop import Loop
from cotenant.launch.schedule import BUDGET_NS
from cotenant.protocol.messages import audit_borders

TIMES = 5
OF_ONE_RANK = [name for name, job in JOBS.items() if job.ranks == 1]


def row(name: str, times: int) -> list[str]:
    """Return a job's row: the times of a step and of an audit, the audits of a launch and their share of its steps."""
    one_processor()
    job = JOBS[name]
    with ExitStack() as stack:
        read = {"data": stack.enter_context(pictures())} if job.reads_pictures else {}
        benchmark = benchmark_of(job.task)(cuda=False, **job.arguments | read)
        loop, steps_ns = Loop(benchmark, Run(benchmark)), []
        loop.warm_up()
        for count in range(1, times + 1):
            seen = loop.observe(job.number)
            steps_ns.append((seen.end_ns - seen.start_ns) / job.number)
            loop.audit(count)
    audit_ns, step_ns = median(loop.auditor.audits.cost_ns), median(steps_ns)
    repeat = max(1, round(2 * BUDGET_NS / (job.number * step_ns)))
    audits = len(audit_borders(job.number, repeat))
    share = audits * audit_ns / (job.number * repeat * step_ns)
    told = "; ".join(loop.auditor.differences) or "the same work"
    cells = [f"{step_ns / 1e6:.3g}", f"{audit_ns / 1e6:.3g}", f"{audit_ns / step_ns:.2g}"]
    return [name, *cells, f"{audits}", f"{100 * share:.2g} %", told]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="run.py audit")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(OF_ONE_RANK)}; all where none is named")
    parser.add_argument("--times", type=int, default=TIMES)
    given = parser.parse_args(argv)
    if unknown := sorted(set(given.jobs) - set(OF_ONE_RANK)):
        parser.error(f"there is no job {unknown[0]}; the jobs are {', '.join(OF_ONE_RANK)}")
    columns = ("job", "step, ms", "audit, ms", "steps", "a launch", "of its steps", "it was")
    table = Table(*columns, title="An audit step beside the measured steps")
    # A new process for each job: the tasks' modules have the same names.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as fresh:
        for name in given.jobs or OF_ONE_RANK:
            print(f"{name} ...", file=sys.stderr, flush=True)
            table.add_row(*fresh.submit(row, name, given.times).result())
    Console(width=150).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
