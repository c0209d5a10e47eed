"""User seconds of each command, measured by turns in this checkout and in an earlier one.

python benchmarks/run.py commands [--before CHECKOUT] [--turns 9] [--launches 28]

Every turn starts a process, as a person would; an uncounted turn comes before the first. The records are copies of one
short run here, as `--launches` repetitions.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Promise, median_of
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
OURS = ("BASE", "DATA_DIRECTORY", "OUTPUT_DIRECTORY", "PYTHONPATH")
LINES: dict[tuple[str, ...], Promise | None] = {
    ("--version",): Promise("<=", 0.15, "s"),
    ("--help",): Promise("<=", 0.2, "s"),
    ("list",): Promise("<=", 0.4, "s"),
    ("status",): None,
    ("plan",): None,
    ("report", "--help"): Promise("<=", 0.3, "s"),
    ("report",): Promise("<=", 1.5, "s"),
    ("doctor",): Promise("<=", 3, "s"),
    ("--dry",): Promise("<=", 1, "s"),
}
SHORT_RUN = ("--name", "toy_reg", "--baseline", "none", "--users", "2", "--", "--repeat", "6", "--number", "10")


def user_seconds(checkout: Path, words: tuple[str, ...], workplace: Path) -> float:
    """Return the user seconds of a process, with its children's. Raises RuntimeError if it fails."""
    with tempfile.TemporaryFile() as said:
        environment = {name: value for name, value in os.environ.items() if name not in OURS}
        environment["XDG_CACHE_HOME"] = str(workplace / "cache" / checkout.name)
        environment["COTENANT_LOCK"] = str(workplace / "lock")
        command = [sys.executable, str(checkout / "run.py"), *words]
        process = subprocess.Popen(command, cwd=workplace, env=environment, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):  # `status` finds no suite, and `doctor` an error
            said.seek(0)
            raise RuntimeError(f"{' '.join(words)}: {said.read().decode()}")
    return usage.ru_utime


def make_records(workplace: Path, launches: int) -> None:
    """Run a short suite, and copy its records as further repetitions."""
    user_seconds(ROOT, SHORT_RUN, workplace)
    output = workplace / "workspace/output"
    for path in sorted(output.glob("*.R0.D*.json")):
        record = json.loads(path.read_text())
        for uid in range(1, launches):
            copy = path.with_name(path.name.replace(".R0.", f".R{uid}."))
            copy.write_text(json.dumps(record | {"run_id": uid}))


def main() -> int:
    parser = argparse.ArgumentParser(prog="run.py commands", description=__doc__)
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="another checkout, measured by turns")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--launches", type=int, default=28, help="so many launches of two users have records")
    given = parser.parse_args()
    sides = [*([given.before.resolve()] if given.before else []), ROOT]
    seconds: dict[tuple[tuple[str, ...], Path], list[float]] = {(line, side): [] for line in LINES for side in sides}
    with tempfile.TemporaryDirectory() as scratch:
        make_records(Path(scratch), given.launches)
        for turn in range(given.turns + 1):
            for line, side in seconds:
                took_s = user_seconds(side, line, Path(scratch))
                if turn:
                    seconds[line, side].append(took_s)
    table, kept = Table("command", "before", "now", "now / before", "n", "promise"), True
    for line, promise in LINES.items():
        now, first = median_of(seconds[line, ROOT]), median_of(seconds[line, sides[0]])
        before = [first.shown(".2f", " s"), f"{now.value / first.value:.2f}"] if given.before else ["", ""]
        kept = kept and (promise is None or promise.kept(now.value))
        verdict = promise.verdict(now.value) if promise else ""
        table.add_row(" ".join(line), before[0], now.shown(".2f", " s"), before[1], str(now.n), verdict)
    Console(width=130).print(table)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
