"""User seconds of each command, measured by turns in this checkout and in an earlier one.

python benchmarks/run.py commands [--before CHECKOUT] [--turns 9]

Every turn starts a process, as a person would; an uncounted turn comes before the first.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pairs import median_of
from promises import Promise
from records import write_files
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
RECORDS = 57
OURS = ("BASE", "DATA_DIRECTORY", "OUTPUT_DIRECTORY", "PYTHONPATH")


@dataclass(frozen=True, slots=True)
class Line:
    """A command line, and the promised user seconds."""

    words: tuple[str, ...]
    promise: Promise | None

    def __str__(self) -> str:
        return " ".join(self.words)


LINES = (
    Line(("--version",), Promise("<=", 0.15, "s")),
    Line(("--help",), Promise("<=", 0.2, "s")),
    Line(("list",), Promise("<=", 0.4, "s")),
    Line(("status",), None),
    Line(("plan",), None),
    Line(("report", "--help"), Promise("<=", 0.3, "s")),
    Line(("report",), Promise("<=", 1.5, "s")),
    Line(("doctor",), Promise("<=", 3, "s")),
    Line(("--dry",), Promise("<=", 1, "s")),
)


def user_seconds(checkout: Path, line: Line, workplace: Path) -> float:
    """Return the user seconds of a process, with those of its children. Raises RuntimeError where it fails."""
    with tempfile.TemporaryFile() as said:
        environment = {name: value for name, value in os.environ.items() if name not in OURS}
        environment["COTENANT_LOCK"] = str(workplace / "lock")
        words = [sys.executable, str(checkout / "run.py"), *line.words]
        process = subprocess.Popen(words, cwd=workplace, env=environment, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):  # `status` finds no suite, and `doctor` an error
            said.seek(0)
            raise RuntimeError(f"{line}: {said.read().decode()}")
    return usage.ru_utime


def main() -> int:
    parser = argparse.ArgumentParser(prog="run.py commands", description=__doc__)
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="another checkout, measured by turns")
    parser.add_argument("--turns", type=int, default=9)
    given = parser.parse_args()
    sides = [*([given.before.resolve()] if given.before else []), ROOT]
    seconds: dict[tuple[Line, Path], list[float]] = {(line, side): [] for line in LINES for side in sides}
    with tempfile.TemporaryDirectory() as scratch:
        workplace = Path(scratch)
        write_files(workplace / "workspace", RECORDS)
        for turn in range(given.turns + 1):
            for line in LINES:
                for side in sides if turn % 2 else reversed(sides):
                    taken = user_seconds(side, line, workplace)
                    seconds[line, side] += [taken] if turn else []
    print(f"User seconds, {RECORDS} records; load average after: {os.getloadavg()[0]:.2f}")
    table, kept = shown(seconds, given.before and sides[0])
    Console(width=120).print(table)
    return 0 if kept else 1


def shown(seconds: dict[tuple[Line, Path], list[float]], other: Path | None) -> tuple[Table, bool]:
    """Return a table of the medians, also of an `other` checkout, and whether all promises are kept."""
    table = Table("command", "before", "now", "95 % interval", "now / before", "n", "promise")
    kept = True
    for line in LINES:
        now = median_of(seconds[line, ROOT])
        before = median_of(seconds[line, other]) if other else None
        ratio = f"{now.value / before.value:.2f}" if before else ""
        kept = kept and (line.promise is None or line.promise.kept(now.value))
        table.add_row(
            str(line),
            f"{before.value:.2f}" if before else "",
            f"{now.value:.2f}",
            f"{now.low:.2f} .. {now.high:.2f}",
            ratio,
            str(now.n),
            line.promise.verdict(now.value) if line.promise else "",
        )
    return table, kept


if __name__ == "__main__":
    sys.exit(main())
