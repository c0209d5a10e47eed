"""Measures each job's kept share by blocks and by whole launches: values, spread and time of both; and whether the
order of blocks matters.

python benchmarks/run.py kept --launches 5 --work DIR [JOB ...]     the jobs of profiles/cpu.json that have neighbours

Both ways are launched by turns; an interrupted run is resumed. Five launches of all jobs take 75 minutes on two
processors, on which nothing else may run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from suites import ROOT
from turns import order_of_turns

from cotenant.errors import EXIT_FAILED, EXIT_PASSED
from cotenant.machine.topology import discover
from cotenant.stats.launches import AcrossLaunches, across_launches
from cotenant.suite.jobfile import load

PROFILE = ROOT / "profiles/cpu.json"
WAYS = ("blocks", "whole")
HEAD = """| job | kept by blocks | 95 % interval | spread | s | kept by whole | 95 % interval | spread | s | differ |
|---|---:|---|---:|---:|---:|---|---:|---:|---|"""
Json = Mapping[str, Any]


def run(directory: Path, uid: int, way: str, jobs: Sequence[str]) -> None:
    """Launch every job once with this baseline, or resume. Raises RuntimeError if it ends before its last launch."""
    environment = os.environ | {"BASE": str(directory / "workspace")}
    outdir = directory / way
    flags = ["--jobs", PROFILE, "--name", ",".join(jobs), "--baseline", way, "--uid", str(uid), "--outdir", outdir]
    if (outdir / f"{PROFILE.stem}.R{uid}.resolved").exists():
        flags.append("--resume")
    print(f"{datetime.now(UTC):%H:%M} launch {uid}, --baseline {way}", file=sys.stderr, flush=True)
    command = [sys.executable, ROOT / "run.py", "--cgroup-base", "cotenant-bench", *flags]
    ended = subprocess.run(command, env=environment, stdout=sys.stderr, check=False)
    if ended.returncode not in (EXIT_PASSED, EXIT_FAILED):
        raise RuntimeError(f"launch {uid} with --baseline {way} ended with {ended.returncode}: see {outdir}")


def kept_of(records: Iterable[Json], way: str) -> dict[str, dict[int, float]]:
    """Return the share that each job's users keep, the geometric mean over a launch, by job and uid.

    A launch counts if every user has a share: by blocks the one in its record, by whole its rate over its rate alone.
    """
    found: dict[tuple[str, int], dict[bool, list[Json]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        name = record["name"].removesuffix(".solo")
        found[name, record["run_id"]][record["solo"]].append(record)
    kept: dict[str, dict[int, float]] = defaultdict(dict)
    for (name, uid), launches in found.items():
        shares = [_share(record, launches[True], way) for record in launches[False]]
        known = [share for share in shares if share is not None]
        if shares and len(known) == len(shares):
            kept[name][uid] = math.exp(fmean(map(math.log, known)))
    return kept


def _share(record: Json, alone: Iterable[Json], way: str) -> float | None:
    if way == "blocks":
        return record["kept"] and record["kept"]["value"]
    rates = [_median(other) for other in alone if other["tenant"] == record["tenant"]]
    own, rate = _median(record), next(iter(rates), None)
    return own / rate if own and rate else None


def _median(record: Json) -> float | None:
    return record["statistics"] and record["statistics"]["median"]


def seconds_of(records: Iterable[Json]) -> dict[str, float]:
    """Return the seconds that all launches of each job took, including those of a user alone."""
    launches: dict[tuple[str, int, int], tuple[float, str]] = {}
    for record in records:
        begin, end = (datetime.fromisoformat(record[name]) for name in ("start_time", "end_time"))
        tenant = record["tenant"] if record["solo"] else -1
        launch = record["name"].removesuffix(".solo"), record["run_id"], tenant
        launches[launch] = max(launches.get(launch, (0.0, "")), ((end - begin).total_seconds(), record["name"]))
    seconds: dict[str, float] = defaultdict(float)
    for (name, _, _), (lasted_s, _) in launches.items():
        seconds[name] += lasted_s
    return seconds


def row(name: str, blocks: Sequence[float], whole: Sequence[float], seconds: Sequence[float]) -> str:
    """Return a job's line; the two ways differ if the interval of each excludes the value of the other."""
    both = [across_launches(values) if values else None for values in (blocks, whole)]
    cells = [cell for one, took_s in zip(both, seconds, strict=True) for cell in (*_cells(one), f"{took_s:.0f}")]
    return f"| {name} | {' | '.join(cells)} | {_differ(*both)} |"


def _cells(one: AcrossLaunches | None) -> tuple[str, str, str]:
    if one is None:
        return "-", "-", "-"
    interval = f"{one.interval[0]:.3f}-{one.interval[1]:.3f}" if one.interval else f"n too small: {one.n}"
    return f"{one.rate:.3f}", interval, "-" if one.spread is None else f"{one.spread:.3f}"


def _differ(one: AcrossLaunches | None, other: AcrossLaunches | None) -> str:
    if one is None or other is None or one.interval is None or other.interval is None:
        return "-"
    outside = [not low <= value.rate <= high for (low, high), value in ((one.interval, other), (other.interval, one))]
    return "yes" if all(outside) else "no"


def main() -> int:
    jobs = [job.name for job in load(PROFILE).jobs if job.group == "student"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", default=jobs, metavar="JOB", help="all where none is named")
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--work", type=Path, required=True, help="a directory for data and records, kept for --resume")
    given = parser.parse_args()
    directory: Path = given.work.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    for uid in range(given.launches):
        for way in WAYS if uid % 2 == 0 else WAYS[::-1]:
            run(directory, uid, way, given.jobs)
    records = {way: [json.loads(path.read_text()) for path in (directory / way).glob("*.D*.json")] for way in WAYS}
    kept = {way: kept_of(records[way], way) for way in WAYS}
    seconds = {way: seconds_of(records[way]) for way in WAYS}
    print(f"# Kept by blocks and by whole launches\n\n{discover().model_name}, {datetime.now(UTC):%Y-%m-%d}.\n\n{HEAD}")
    for name in given.jobs:
        values = (list(kept[way][name].values()) for way in WAYS)
        print(row(name, *values, [seconds[way][name] for way in WAYS]))
    print(order_of_turns(records["blocks"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
