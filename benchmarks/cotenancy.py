"""The share of its rate that each job keeps beside another, with slices and without, by profiles/cotenancy.json.

python benchmarks/run.py cotenancy --repetitions 5 --work DIR     writes benchmarks/results/what-different-jobs-keep.md

Each repetition runs the profile in slices, then without; an interrupted run is resumed. Five repetitions take two
hours and three quarters on two processors, on which nothing else may run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from suites import ROOT

from cotenant.errors import EXIT_FAILED, EXIT_PASSED
from cotenant.machine.topology import discover
from cotenant.report.answer import answers
from cotenant.report.beside import outside_pairs
from cotenant.report.beside_views import mix_grid, pairs_grid
from cotenant.report.grid import Grid
from cotenant.report.pressure import pressure_curves, words_of
from cotenant.report.renderers import FILES
from cotenant.report.summary import summarise
from cotenant.results.read import read_records
from cotenant.results.table import Rows

PROFILE = ROOT / "profiles/cotenancy.json"
RESULT = ROOT / "benchmarks/results/what-different-jobs-keep.md"
WAYS = ("auto", "none")
"""Values of --isolation: in slices, by the backend that this host allows, and without slices."""


def run(directory: Path, uid: int, way: str) -> None:
    """Run the suite once, or resume it. Raises RuntimeError if it ends before its last launch.

    A failed launch is no reason to stop: the result reports it.
    """
    # The case without slices must not inherit our limits of threads, which a user's shell lacks.
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    environment["BASE"] = str(directory / "workspace")
    outdir = directory / way
    flags = ["--isolation", way, "--uid", str(uid), "--outdir", str(outdir), "--cgroup-base", "cotenant-bench"]
    if (outdir / f"{PROFILE.stem}.R{uid}.resolved").exists():
        flags.append("--resume")
    print(f"{datetime.now(UTC):%H:%M} repetition {uid}, --isolation {way}", flush=True)
    ended = subprocess.run([sys.executable, ROOT / "run.py", "--jobs", PROFILE, *flags], env=environment, check=False)
    if ended.returncode not in (EXIT_PASSED, EXIT_FAILED):
        raise RuntimeError(f"repetition {uid} with --isolation {way} ended with {ended.returncode}: see {outdir}")


def result(directory: Path, repetitions: int) -> str:
    """Return the page of results from all records, as Markdown."""
    summary = summarise(Rows.all(read_records([directory / way for way in WAYS]).table))
    curves = pressure_curves(summary)
    grids: list[tuple[str, Grid]] = [
        ("Mixes", mix_grid(outside_pairs(summary))),
        ("Pairs", pairs_grid(summary)),
    ]
    host = f"{discover().model_name}, {os.cpu_count()} processors"
    parts = [
        "# What different jobs keep beside each other",
        f"`python benchmarks/run.py cotenancy --repetitions {repetitions}`, {datetime.now(UTC):%Y-%m-%d}, {host}.",
        "Isolation none is without slices. n counts launches, and intervals are over launches.",
        *answers(summary),
        *(f"## {title}\n\n{as_markdown(grid)}" for title, grid in grids if grid.groups),
        "## Curves\n\n" + "\n".join(f"- {words_of(each)}" for each in curves),
    ]
    return "\n\n".join(parts) + "\n"


def as_markdown(grid: Grid) -> str:
    """Return for each group of a grid its title, its table and its notes, as Markdown."""
    parts = []
    for group in grid.groups:
        notes = [f"- {''.join(text for text, _ in words)}" for words in group.notes]
        table = FILES["md"](replace(grid, groups=[group])).strip()
        parts.append("\n\n".join(filter(None, (f"{group.title} ({group.facts})", table, "\n".join(notes)))))
    return "\n\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--work", type=Path, required=True, help="a directory for data and records, kept for --resume")
    parser.add_argument("--output", type=Path, default=RESULT)
    given = parser.parse_args()
    directory: Path = given.work.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    for uid in range(given.repetitions):
        for way in WAYS:
            run(directory, uid, way)
    given.output.write_text(result(directory, given.repetitions))
    print(f"{given.output} is written.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
