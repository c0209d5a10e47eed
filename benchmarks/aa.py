"""The same suite on two sides, A and B, launched by turns into a directory for each: no job may look different.

python benchmarks/run.py aa [--jobs FILE] [--name NAMES] [--launches N] [--outdir DIR] [-- flags of run.sh]
python benchmarks/run.py aa --judge DIR        judges the records that --outdir of an earlier run kept

A job that comes out FASTER or SLOWER is launched again on both sides, and only the new launches judge it. The claim
holds on a quiet machine: it is shown only if foreign load and steal were measured in every launch, stayed within their
bounds in the median launch of each side, and exceeded no bound more than five times in any launch. Foreign load is
known only of launches that were timed for at least a second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table
from suites import ROOT

from cotenant.commands.flags import at_dashes
from cotenant.findings.rules import host
from cotenant.report.comparison import (
    Conditions,
    SuiteComparison,
    compare_launches,
    comparison_grid,
    confirmed,
    flagged,
)
from cotenant.report.renderers import show
from cotenant.results.launches import LaunchRecords, launches_of
from cotenant.results.read import read_records
from cotenant.stats.launches import COMPARISON_LAUNCHES
from cotenant.stats.verdict import Verdict
from cotenant.suite.cells import expand
from cotenant.suite.jobfile import Suite, load, resolve_path

SIDES = ("A", "B")
SETTLED = (Verdict.SAME, Verdict.UNCLEAR)
IN_ONE = 5
"""The multiple of a bound that a single launch may reach: load of other processes comes and goes in seconds."""


@dataclass(frozen=True)
class Bound:
    """Foreign load, or steal, in the launches of one side, as shares of its bound: quiet is a median of at most 1.

    No launch may go beyond IN_ONE. `unknown` launches have no such number, so that they cannot be called quiet.
    """

    side: str
    what: str
    shares: tuple[float, ...]
    unknown: int
    bound: str

    @property
    def quiet(self) -> bool:
        return self.known and not self.exceeded

    @property
    def exceeded(self) -> bool:
        return bool(self.shares) and (median(self.shares) > 1 or max(self.shares) > IN_ONE)

    @property
    def known(self) -> bool:
        return bool(self.shares) and not self.unknown


def main() -> int:
    given, flags = _given(sys.argv[1:])
    if given.judge is not None:
        return _judge(given.judge, _compared(given.judge / "first"))
    suite = load(resolve_path(given.jobs, [Path.cwd(), ROOT]))
    with tempfile.TemporaryDirectory() as scratch:
        place = given.outdir or Path(scratch)
        _launch(place / "first", suite, given.name, given.launches, 0, flags)
        lines = _compared(place / "first")
        if cells := flagged(lines):
            names = [job.stem for job in suite.jobs if {cell.label for cell in expand(job)} & set(cells)]
            print(f"Once more: {', '.join(names)}", flush=True)
            _launch(place / "again", suite, names, given.launches, 2 * given.launches, flags)
        return _judge(place, lines)


def _judge(place: Path, lines: SuiteComparison) -> int:
    """Print the comparison of the launches, confirmed by repeated ones; return 0 only if the claim is shown."""
    if (place / "again").exists():
        cells, again = flagged(lines), _compared(place / "again")
        lines = confirmed(lines, SuiteComparison(tuple(one for one in again.lines if one.job in cells), None))
    bounds = [bound for side in SIDES for bound in _bounds(side, list(_records(place.glob(f"*/{side}"))))]
    console = Console(width=160)
    show([comparison_grid(lines)], console)
    console.print(_table(bounds))
    said, status = _said(lines, bounds)
    print(said)
    return status


def _given(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    ours, flags = at_dashes(words)
    parser = argparse.ArgumentParser(prog="benchmarks/run.py aa", description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", default="cpu", help="a job file or profile (default cpu)")
    parser.add_argument("--name", action="append", default=[], help="only these jobs, as run.sh takes them")
    parser.add_argument("--launches", type=int, default=5, help="of each side (default 5, fewer judge nothing)")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--outdir", type=Path, help="keep the records here (default: they are not kept)")
    place.add_argument("--judge", type=Path, metavar="DIR", help="launch nothing: judge what was kept here")
    given = parser.parse_args(ours)
    if given.outdir is not None and given.outdir.exists():
        parser.error(f"{given.outdir} exists: another run's records would count")
    if given.judge is not None and not (given.judge / "first").is_dir():
        parser.error(f"{given.judge} holds no earlier run: this takes what --outdir made")
    return given, list(flags)


def _launch(place: Path, suite: Suite, names: Sequence[str], launches: int, uid: int, flags: Sequence[str]) -> None:
    """Run the suite for A and B by turns, `launches` times each."""
    chosen = [word for name in names for word in ("--name", name)]
    for turn in range(launches):
        for index, side in enumerate(SIDES):
            where = ["--uid", str(uid + 2 * turn + index), "--outdir", str(place.absolute() / side)]
            command = [sys.executable, str(ROOT / "run.py"), "--jobs", str(suite.path), *where, *chosen, *flags]
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            if ended.returncode > 1:
                raise SystemExit(ended.stdout + ended.stderr)
            took = next((line for line in ended.stdout.splitlines() if line.startswith("Total Time")), "")
            print(f"{side} {turn + 1}/{launches}  {took}", flush=True)


def _compared(place: Path) -> SuiteComparison:
    a, b = (_launches(place / side) for side in SIDES)
    return compare_launches(a, b, Conditions())


def _launches(place: Path) -> dict[str, list[LaunchRecords]]:
    launches, left_out = launches_of(read_records([place]).frame)
    for line in left_out:
        print(f"{place.name}: {line}")
    return launches


def _records(places: Iterator[Path]) -> Iterator[dict[str, Any]]:
    """Yield the record of tenant 0 of each launch: all its tenants have the same foreign load and steal."""
    for place in places:
        for path in sorted(place.glob("*.R*.D*.json")):
            record = json.loads(path.read_text())
            if record["tenant"] == 0:
                yield record


def _bounds(side: str, records: Sequence[dict[str, Any]]) -> list[Bound]:
    busy, most = [], host.tolerated(os.cpu_count() or 1)
    for record in records:
        foreign, sampling = record["meters"].get("foreign"), record["meters"].get("sampling")
        if foreign and sampling and sampling["window_s"] >= host.LEAST_WINDOW_S:
            busy.append(foreign["processors"] / host.tolerated(foreign["host_processors"]))
    taken = [
        record["meters"]["host"]["stolen_share"] / host.MOST_STOLEN for record in records if "host" in record["meters"]
    ]
    return [
        Bound(side, "foreign load", tuple(busy), len(records) - len(busy), f"{most:g} processors"),
        Bound(
            side, "steal", tuple(taken), len(records) - len(taken), f"{100 * host.MOST_STOLEN:g} % of all processors"
        ),
    ]


def _table(bounds: Sequence[Bound]) -> Table:
    table = Table("side", "what others took", "median", "worst", "launches", "not known", "bound", "quiet")
    table.title = f"As a share of its bound, which half of the launches keep, and none exceeds {IN_ONE} times"
    for one in bounds:
        shares = [f"{median(one.shares):.2f}", f"{max(one.shares):.2f}"] if one.shares else ["-", "-"]
        table.add_row(
            one.side, one.what, *shares, str(len(one.shares)), str(one.unknown), one.bound, "yes" if one.quiet else "no"
        )
    return table


def _said(lines: SuiteComparison, bounds: Sequence[Bound]) -> tuple[str, int]:
    """Return the result as a sentence, and 0 only if the claim is shown."""
    fewest = min((min(one.comparison.n) for one in lines.lines if one.comparison is not None), default=0)
    if fewest < COMPARISON_LAUNCHES:
        return f"Nothing is shown: {fewest} launches a side judge nothing, {COMPARISON_LAUNCHES} do.", 1
    missing = [one.job for one in lines.lines if one.verdict is Verdict.INVALID]
    if missing:
        return f"Nothing is shown: {', '.join(missing)} cannot be compared.", 1
    different = [f"{one.job} {one.verdict}" for one in lines.lines if one.verdict not in SETTLED]
    doubt = _doubt(bounds)
    if different:
        more = f", and {doubt}" if doubt else ""
        return f"Refuted: {', '.join(different)}, though both sides are the same{more}.", 1
    if doubt:
        return f"No job looks different, but {doubt}: this is no proof.", 1
    same = sum(one.verdict is Verdict.SAME for one in lines.lines)
    return f"Shown: none of {len(lines.lines)} jobs is FASTER or SLOWER ({same} SAME) with {fewest} launches a side.", 0


def _doubt(bounds: Sequence[Bound]) -> str:
    """Return the reason why the machine cannot be called quiet, or an empty string."""
    if any(one.exceeded for one in bounds):
        return "the machine was not quiet"
    unknown = [f"{one.what} in {one.unknown} launches of {one.side}" for one in bounds if not one.known]
    return f"nobody knows of {', '.join(unknown)}" if unknown else ""


if __name__ == "__main__":
    sys.exit(main())
