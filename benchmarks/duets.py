"""Duets beside a neighbour that comes and goes: equal sides, and a B that does 5 % more work for an item.

python benchmarks/run.py duets [--runs 10] [--repetitions 8] [--seconds 8] [--users 1] [--neighbours 1]
                               [--name vae|sums]

Equal sides run the vae. The side with 5 % more work is a program whose steps compute 210 sums and count 200.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from promises import Promise
from rich.console import Console
from rich.table import Table
from suites import ROOT, VAE, job

from cotenant.errors import EXIT_PASSED, EXIT_SLOWER

SUMS = {"name": "sums", "cmd": str(ROOT / "tests/tenants/sums.py"), "args": {"--number": 1}, "cgroup": "student"}
EQUAL, SLOWER = "vae, A/A", "sums, 5 % more work"
CASES: dict[str, tuple[dict[str, Any], Sequence[str]]] = {
    EQUAL: (job("vae", VAE), ("---",)),
    SLOWER: (SUMS, ("---", "--sums", "210")),
}
PROMISES = {EQUAL: Promise("<=", 0.05, of="SLOWER or FASTER"), SLOWER: Promise(">=", 0.8, of="SLOWER")}
BUSY_S = (1, 6)


def come_and_go(seed: int) -> None:
    """Spin for 1 to 6 seconds, sleep for 1 to 6 seconds, and so on without end."""
    chance = random.Random(seed)
    while True:
        until_s = time.monotonic() + chance.uniform(*BUSY_S)
        while time.monotonic() < until_s:
            pass
        time.sleep(chance.uniform(*BUSY_S))


@contextmanager
def neighbours(number: int) -> Iterator[None]:
    """Run `number` processes of `come_and_go`, each with its own seed."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); from duets import come_and_go; come_and_go(int(sys.argv[2]))"
    line = [sys.executable, "-c", code, str(Path(__file__).parent)]
    started = [subprocess.Popen([*line, str(seed)]) for seed in range(number)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def ratio(case: str, flags: Sequence[str]) -> dict[str, Any]:
    """Run one duet; return its ratio over launches. Raises RuntimeError if it has none."""
    entry, words = CASES[case]
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        (place / "jobs.json").write_text(json.dumps([entry]))
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
        duet = ["--jobs", "jobs.json", "--duet", entry["name"], "--json"]
        line = [sys.executable, str(ROOT / "run.py"), *duet, *flags, "--", *words]
        ended = subprocess.run(
            line, cwd=place, env=environment | {"BASE": scratch}, capture_output=True, text=True, check=False
        )
        if ended.returncode not in (EXIT_PASSED, EXIT_SLOWER):
            raise RuntimeError(ended.stdout + ended.stderr)
    found: list[dict[str, Any]] = json.loads(ended.stdout)["over_launches"]
    if len(found) != 1:
        raise RuntimeError("--repetitions of two or more have a ratio over launches")
    return found[0]


def share(case: str, verdicts: Sequence[str]) -> float:
    """Return the share of runs whose verdict the promise counts."""
    counted = {"SLOWER", "FASTER"} if case == EQUAL else {"SLOWER"}
    return sum(verdict in counted for verdict in verdicts) / len(verdicts)


def _span(interval: Sequence[float] | None) -> str:
    return "" if interval is None else f"({interval[0]:.3f}-{interval[1]:.3f})"


def main() -> int:
    parser = argparse.ArgumentParser(prog="run.py duets", description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=8, help="launches of a run, two at least")
    parser.add_argument("--seconds", type=int, default=8, help="of a launch")
    parser.add_argument("--users", type=int, default=1)
    parser.add_argument("--neighbours", type=int, default=1, help="each takes a processor for seconds, then leaves it")
    parser.add_argument("--name", choices=[entry["name"] for entry, _ in CASES.values()], help="of one program")
    given = parser.parse_args()
    lasting = f"{given.repetitions} launches of {given.seconds} s"
    title = f"Duets of {lasting}, {given.users} a side, beside {given.neighbours} that come and go"
    table = Table("case", "B / A of each run", "verdicts", "promise", title=title)
    asked = {"--users": given.users, "--repetitions": given.repetitions, "--budget": given.seconds}
    flags = [str(word) for pair in asked.items() for word in pair]
    kept = True
    with neighbours(given.neighbours):
        for case, (entry, _) in CASES.items():
            if given.name not in (None, entry["name"]):
                continue
            ratios = [ratio(case, flags) for _ in range(given.runs)]
            verdicts = [str(one["verdict"]) for one in ratios]
            spans = [f"{one['value']:.3f} {_span(one['interval'])}" for one in ratios]
            counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
            found = share(case, verdicts)
            kept &= PROMISES[case].kept(found)
            table.add_row(case, "\n".join(spans), counts, PROMISES[case].verdict(found))
    Console(width=140).print(table)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
