"""The share that each job's users keep, by blocks and by whole launches alone, which are the blocks' witness.

python benchmarks/run.py kept --launches 5 --work DIR [--jobs FILE] [JOB ...]     the file's jobs that have neighbours

Both ways are launched by turns. Five launches of all jobs of profiles/cpu.json take 75 minutes on two processors, on
which nothing else may run; the same command goes on with an interrupted run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cotenant.api.loading import load
from cotenant.errors import EXIT_FAILED, EXIT_PASSED
from cotenant.stats.kept import Kept
from cotenant.suite import jobfile

ROOT = Path(__file__).resolve().parents[1]
WAYS = ("blocks", "whole")


def run(directory: Path, uid: int, way: str, profile: Path, jobs: Sequence[str]) -> None:
    """Launch every job once with this baseline, or resume. Raises RuntimeError if it ends before its last launch."""
    outdir = directory / way
    flags = ["--jobs", profile, "--name", ",".join(jobs), "--baseline", way, "--uid", str(uid), "--outdir", outdir]
    if (outdir / f"{profile.stem}.R{uid}.resolved").exists():
        flags.append("--resume")
    print(f"launch {uid}, --baseline {way}", file=sys.stderr, flush=True)
    environment = os.environ | {"BASE": str(directory / "workspace")}
    ended = subprocess.run([sys.executable, ROOT / "run.py", *flags], env=environment, stdout=sys.stderr, check=False)
    if ended.returncode not in (EXIT_PASSED, EXIT_FAILED):
        raise RuntimeError(f"launch {uid} with --baseline {way} ended with {ended.returncode}: see {outdir}")


def shown(kept: Kept | None) -> tuple[str, str]:
    """Return a share with its interval, and the number and kind of its samples."""
    if kept is None:
        return "-", "-"
    interval = f" [{kept.interval[0]:.3f}, {kept.interval[1]:.3f}]" if kept.interval else ""
    return f"{kept.value:.3f}{interval}", f"{kept.n} {kept.over}"


def differ(one: Kept | None, other: Kept | None) -> str:
    """Say whether the interval of each excludes the value of the other."""
    if one is None or other is None or one.interval is None or other.interval is None:
        return "-"
    outside = [not low <= value.value <= high for (low, high), value in ((one.interval, other), (other.interval, one))]
    return "yes" if all(outside) else "no"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="JOB", help="all where none is named")
    parser.add_argument("--jobs", type=Path, default=ROOT / "profiles/cpu.json", metavar="FILE", help="a job file")
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--work", type=Path, required=True, help="a directory for data and records")
    given = parser.parse_args()
    profile: Path = given.jobs.absolute()
    names = given.names or [job.name for job in jobfile.load(profile).jobs if job.group == "student"]
    directory: Path = given.work.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    for uid in range(given.launches):
        for way in WAYS if uid % 2 == 0 else WAYS[::-1]:
            run(directory, uid, way, profile, names)
    blocks, whole = ({job.name: job.kept for job in load(directory / way).jobs} for way in WAYS)
    table = Table("job", "kept by blocks", "over", "kept by whole launches", "over", "differ")
    for name in names:
        one, other = blocks.get(name), whole.get(name)
        table.add_row(name, *shown(one), *shown(other), differ(one, other))
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
