"""The matrix of pairs from launches that each measure all pairs, beside the committed one from five of every pair.

./run.sh --jobs cotenancy --pairs vae,wlm,convnet,loader,recom,decode --uid N --outdir DIR_N     for each launch
python benchmarks/run.py matrix DIR_1 DIR_2 ...                                                  prints the page
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean, median

from scipy import stats
from suites import ROOT

COMMITTED = ROOT / "benchmarks/results/what-different-jobs-keep.md"
REPETITIONS = 5
PLACE = re.compile(r"(?P<job>\w+)\.in\.(?P<first>\w+)\+(?P<second>\w+)")
CELL = re.compile(r"~?(?P<value>[\d.]+)\??(?: \((?P<low>[\d.]+)-(?P<high>[\d.]+)\))?")
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Keeps:
    """The logarithm of the share that a job keeps beside another, and half its interval's length, if it has one."""

    log: float
    half: float | None


def of_launch(directory: Path) -> dict[Pair, Keeps]:
    """Return the share that every job keeps beside each other job; beside its own copy the mean of both users."""
    found: dict[Pair, list[Keeps]] = defaultdict(list)
    for path in sorted(directory.glob("*.D*.json")):
        record = json.loads(path.read_text())
        place, kept = PLACE.fullmatch(record["name"]), record["kept"]
        if place is None or kept is None:
            continue
        job, first, second = place.groups()
        low, high = kept["interval"]
        keeps = Keeps(math.log(kept["value"]), math.log(high / low) / 2)
        found[job, second if job == first else first].append(keeps)
    return {pair: Keeps(fmean(one.log for one in both), _mean_half(both)) for pair, both in found.items()}


def _mean_half(of: Sequence[Keeps]) -> float:
    return fmean(one.half for one in of if one.half is not None)


def committed(text: str) -> dict[Pair, Keeps]:
    """Return the matrix measured in slices, read from a page that `run.py cotenancy` wrote."""
    lines = itertools.dropwhile(lambda line: not line.startswith("pairs of cotenancy"), text.splitlines())
    rows = [[cell.strip() for cell in line.split("|")][4:-2] for line in itertools.islice(lines, 2, 10)]
    head, _, *body = [row for row in rows if row]
    found = {}
    for job, *cells in body:
        for neighbour, cell in zip(head[1:], cells, strict=True):
            seen = CELL.match(cell)
            if seen is not None and job in head:
                half = math.log(float(seen["high"]) / float(seen["low"])) / 2 if seen["low"] else None
                found[job, neighbour] = Keeps(math.log(float(seen["value"])), half)
    return found


def seconds_of(directory: Path) -> float:
    """Return how long a launch took, from its start to its last record's end."""
    records = [json.loads(path.read_text()) for path in directory.glob("*.D*.json")]
    begun, ended = ([datetime.fromisoformat(one[name]) for one in records] for name in ("start_time", "end_time"))
    return (max(ended) - min(begun)).total_seconds()


def spread_of(launches: Sequence[Mapping[Pair, Keeps]], pairs: Sequence[Pair]) -> float:
    """Return the standard deviation from launch to launch, pooled over pairs."""
    deviations = []
    for pair in pairs:
        values = [launch[pair].log for launch in launches]
        deviations += [(value - fmean(values)) ** 2 for value in values]
    return math.sqrt(sum(deviations) / (len(pairs) * (len(launches) - 1)))


def page(launches: Sequence[Mapping[Pair, Keeps]], before: Mapping[Pair, Keeps], seconds: Sequence[float]) -> str:
    """Return both matrices and their differences, as Markdown. Only pairs that every launch has are compared."""
    pairs = [pair for pair in before if all(pair in launch for launch in launches)]
    jobs = list(dict.fromkeys(job for job, _ in pairs))
    now = {pair: fmean(launch[pair].log for launch in launches) for pair in pairs}
    lines = [f"| job | {' | '.join(jobs)} |", "|---|" + "---:|" * len(jobs)]
    for job in jobs:
        cells = (f"{math.exp(now[job, other]):.3f} / {math.exp(before[job, other].log):.3f}" for other in jobs)
        lines.append(f"| {job} | {' | '.join(cells)} |")
    factor = math.sqrt(REPETITIONS) / stats.t.ppf(0.975, REPETITIONS - 1)
    halves = {pair: half for pair in pairs if (half := before[pair].half) is not None}
    spread = math.sqrt(fmean((half * factor) ** 2 for half in halves.values()))
    inside = sum(abs(now[pair] - before[pair].log) <= half for pair, half in halves.items())
    signed = fmean(now[pair] - before[pair].log for pair in pairs)
    own = median(one.half for launch in launches for one in launch.values() if one.half is not None)
    took = ", ".join(f"{each:.0f}" for each in seconds)
    facts = [
        f"- One launch takes {took} s for all {len(jobs) * (len(jobs) + 1) // 2} pairs.",
        (
            f"- Standard deviation from launch to launch: {spread_of(launches, pairs):.3f} by blocks "
            f"(n = {len(launches)}), {spread:.3f} by launches (n = {REPETITIONS}, from its intervals)."
        ),
        (
            f"- Half an interval, median: {own:.3f} of one launch by blocks, {median(halves.values()):.3f} of "
            f"{REPETITIONS} repetitions by launches."
        ),
        (
            f"- {inside} of {len(halves)} values by blocks lie inside the intervals by launches; on average they are "
            f"{100 * abs(signed):.1f} % {'lower' if signed < 0 else 'higher'}."
        ),
    ]
    return "\n".join([*lines, "", *facts])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR", help="records of a launch; two and more")
    given = parser.parse_args()
    if len(given.directories) < 2:
        parser.error("A spread from launch to launch needs two launches: name two directories.")
    launches = [of_launch(directory) for directory in given.directories]
    print(page(launches, committed(COMMITTED.read_text()), [*map(seconds_of, given.directories)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
