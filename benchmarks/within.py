"""Promise 1: the system calls of the timed thread between an observation's two clock reads.

Each task runs as two tenants of a real launch, traced by strace, which slows it down and changes nothing else. A
write to a file or a socket there, or a run of the garbage collector, breaks the promise. On an accelerator a transfer
to the host is no system call: the tests of the loop look for those.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from suites import REPORT, ROOT, run_suite

from cotenant.errors import EXIT_USAGE

JOBS: dict[str, tuple[str, dict[str, Any]]] = {
    "toy_reg": ("regression/polynome", {"--repeat": 8, "--number": 50}),
    "vae": ("variational_auto_encoder/auto_encoding_variational_bayes", {"--repeat": 8, "--number": 10}),
    "wlm": (
        "natural_language_processing/word_language_model",
        {"--repeat": 8, "--number": 2, "--batch-size": 4, "--emsize": 64, "--nhid": 64, "--words": 1000},
    ),
    "cart": ("reinforcement/cart_pole", {"--repeat": 8, "--number": 100}),
}
OUTPUT = {"write", "writev", "pwrite64", "pwritev", "sendto", "sendmsg", "sendmmsg", "sendfile"} | {
    "fsync",
    "fdatasync",
    "open",
    "openat",
    "connect",
}
"""Calls that write out of the process, or open a file or a connection for that."""
CALL = re.compile(r"(\d+) +(\d+)\.(\d{9}) (?:<\.\.\. )?(\w+)")
Span = tuple[int, int]


def traced(directory: Path, name: str) -> list[dict[str, Any]]:
    """Run one job under strace and return its records."""
    task, arguments = JOBS[name]
    directory.mkdir(parents=True)
    command = directory / "traced.sh"
    to, main = f"{directory}/$JOB_ID", ROOT / "tasks" / task / "pytorch" / "main.py"
    stamps = "--absolute-timestamps=format:unix,precision:ns"
    command.write_text(
        f'#!/bin/sh\nexec strace -f -qq {stamps} -o "{to}.trace" '
        f'python "{ROOT}/benchmarks/watched.py" "{to}.json" "{main}" "$@"\n'
    )
    command.chmod(0o755)
    job = {"name": name, "cmd": str(command), "args": arguments | REPORT, "cgroup": "student"}
    return run_suite(directory / "run", [job], "--users", "2", "--cgroup-base", "cotenant-bench")


def calls_within(trace: Path, pid: int, ahead_ns: int, spans: list[Span]) -> Iterator[str]:
    """Yield the system calls that the process's first thread began inside a span of the monotonic clock."""
    with trace.open() as lines:
        for line in lines:
            found = CALL.match(line)
            if found is None or int(found[1]) != pid:
                continue
            at_ns = int(found[2]) * 1_000_000_000 + int(found[3]) - ahead_ns
            if any(start <= at_ns <= end for start, end in spans):
                yield found[4]


def overlapping(collections: Iterable[Span], spans: list[Span]) -> int:
    """Count the collections that overlap a span."""
    return sum(any(begin <= end and start <= stop for start, end in spans) for begin, stop in collections)


def row(name: str, directory: Path) -> tuple[list[str], bool]:
    """Return a task's line of the table, and whether the promise was kept."""
    records = traced(directory, name)
    calls: Counter[str] = Counter()
    collections = batches = observations = 0
    for record in records:
        told = json.loads((directory / f"{record['tenant']}.json").read_text())
        first_ns, last_ns = told["ahead_ns"]
        if abs(last_ns - first_ns) > 1_000_000:
            raise RuntimeError("The realtime clock was set while it ran: run it again.")
        spans = [(seen["start_ns"], seen["end_ns"]) for seen in record["observations"]]
        calls.update(calls_within(directory / f"{record['tenant']}.trace", told["pid"], first_ns, spans))
        collections += overlapping(told["collections"], spans)
        observations += len(spans)
        batches += len(spans) * record["number"]
    output = sum(count for call, count in calls.items() if call in OUTPUT)
    shown = ", ".join(f"{call} {count}" for call, count in calls.most_common()) or "none"
    kept = not output and not collections and observations > 0
    verdict = "kept" if kept else "BROKEN"
    return [name, str(observations), str(batches), shown, str(output), str(collections), verdict], kept


def main() -> int:
    if shutil.which("strace") is None:
        print("strace is missing: apt-get install strace.", file=sys.stderr)
        return EXIT_USAGE
    columns = ("task", "observations", "batches", "system calls in them", "that write", "collections", "promise")
    table, kept = Table(*columns, title="Between an observation's clock reads: the timed thread"), []
    with tempfile.TemporaryDirectory() as scratch:
        for name in JOBS:
            line, fine = row(name, Path(scratch, name))
            table.add_row(*line)
            kept.append(fine)
    Console(width=140).print(table)
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
