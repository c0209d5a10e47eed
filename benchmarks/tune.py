"""`tune`'s batch size beside an exhaustive sweep: the launches that it needs, and the share of the best rate it misses.

python benchmarks/run.py tune [JOB ...] [--users 2] [--rounds 3] [--again 5] [--measured 3]

`./run.sh tune --only batch-size` searches first; then 16 batch sizes are launched in rounds, each in a random order.
The sweep chooses its best size from noisy rates, so that size and tune's are launched again by turns, and the regret is
computed from these launches alone. All launches are those of a suite: all tenants at once, in slices.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from cotenant.results.launches import launches_of
from cotenant.results.read import read_records
from cotenant.stats.launches import half_width
from cotenant.suite.cells import expand
from cotenant.suite.jobfile import load
from cotenant.suite.variables import Value

ROOT = Path(__file__).resolve().parents[1]
SWEPT = {
    "vae": (16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192),
    "dcgan": (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 64),
    "convnet": (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48),
}
"""The batch sizes of a job's sweep: as far as `tune` goes on two processors, where a step takes some three seconds."""
OBSERVED = {"--repeat": 8, "--skip": 2}
LIMIT_S, SEED = 3600, 1
MOST_LAUNCHES, MOST_REGRET = 10, 0.03
"""The promise: within 3 % of the best of the sweep, in at most 10 launches."""

Rates = dict[int, list[float]]


@dataclass(frozen=True, slots=True)
class Bench:
    """Launches of one job in a folder of their own; `cmd` and `args` are those of profiles/cpu.json."""

    folder: Path
    job: str
    users: int
    cmd: str
    args: dict[str, Value]

    def run(self, *words: object) -> None:
        """Run run.py. Exits if it fails; status 1 is an answer: a batch size did not fit."""
        line = [*map(str, (sys.executable, ROOT / "run.py", *words, "--users", self.users))]
        ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if ended.returncode not in (0, 1):
            sys.exit(f"{self.job}: {(ended.stderr or ended.stdout).strip()[-2000:]}")

    def tuned(self, measured_s: float) -> tuple[int, int]:
        """Return the batch size that `tune` finds, and the number of its launches."""
        out = self.folder / "tuned.json"
        flags = ["--jobs", "cpu", "--name", self.job, "--only", "batch-size", "--measured", measured_s]
        self.run("tune", *flags, "--out", out)
        if not out.exists():
            sys.exit(f"{self.job}: no setting of it has a rate.")
        (entry,) = json.loads(out.read_text())
        return entry["args"]["--batch-size"], sum(each["n"] for each in entry["tuned"]["settings"])

    def rates(self, name: str, orders: Sequence[Sequence[int]]) -> Rates:
        """Launch the batch sizes in these orders; return for each the rates of all tenants together, one per round."""
        rates: Rates = {size: [] for size in sorted(orders[0])}
        for uid, order in enumerate(orders):
            file = self.folder / f"{name}.json"
            file.write_text(json.dumps([self.entry(size) for size in order]))
            self.run("--jobs", file, "--baseline", "none", "--outdir", self.folder / name, "--uid", uid)
            print(f"{self.job}: {name}, round {uid + 1} of {len(orders)}", file=sys.stderr, flush=True)
        for job, launches in launches_of(read_records([self.folder / name]).frame)[0].items():
            in_order = sorted(launches, key=lambda launch: launch.run_id)
            rates[int(job.removeprefix("b"))] = [launch.rate for launch in in_order if launch.rate is not None]
        return rates

    def entry(self, size: int) -> dict[str, object]:
        """Return the job with a batch size; its observations hold about as many items as the job's own."""
        number = max(1, round(int(self.args["--number"]) * int(self.args["--batch-size"]) / size))
        args = self.args | OBSERVED | {"--batch-size": size, "--number": number}
        return {"name": f"b{size}", "cmd": self.cmd, "cgroup": "student", "args": args}


def regret(rates: Rates, tuned: int, best: int) -> tuple[float, str]:
    """Return 1 - tuned / best over launches by turns, also in words with its t interval (on logarithms of ratios)."""
    logs = [math.log(ours / top) for ours, top in zip(rates[tuned], rates[best], strict=False)]
    half = half_width(logs)
    ends = (
        ""
        if half is None
        else " ({:.1f} to {:.1f} %)".format(*(100 * (1 - math.exp(fmean(logs) + side * half)) for side in (1, -1)))
    )
    lost = 1 - math.exp(fmean(logs))
    return lost, f"{100 * lost:.1f} %{ends}, n {len(logs)}"


def row(job: str, given: argparse.Namespace) -> tuple[list[str], bool]:
    """Tune a job, sweep it, and launch both answers again; return its row and whether the promise is kept."""
    (own,) = [each for each in load(ROOT / "profiles/cpu.json").jobs if each.name == job]
    (cell,) = expand(own)
    chance, begin_s = random.Random(SEED), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cotenant-tune-") as folder:
        bench = Bench(Path(folder), job, given.users, own.cmd, dict(cell.args))
        tuned, launches = bench.tuned(given.measured)
        sizes = SWEPT[job]
        swept = bench.rates("sweep", [chance.sample(sizes, len(sizes)) for _ in range(given.rounds)])
        best = max((size for size in sizes if swept[size]), key=lambda size: fmean(swept[size]))
        lost, words = 0.0, "0: the same size"
        if best != tuned:
            turns = [(tuned, best) if turn % 2 else (best, tuned) for turn in range(given.again)]
            lost, words = regret(bench.rates("again", turns), tuned, best)
    shown = ", ".join(f"{size}: {fmean(of):.4g}" for size, of in swept.items() if of)
    kept = launches <= MOST_LAUNCHES and lost <= MOST_REGRET
    minutes = f"{(time.monotonic() - begin_s) / 60:.1f}"
    cells = [job, str(dict(cell.args)["--batch-size"]), str(tuned), str(launches), str(best), words, minutes, shown]
    return cells, kept


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="run.py tune")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"of {', '.join(SWEPT)}; all where none is named")
    parser.add_argument("--users", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="launches of each size in the sweep")
    parser.add_argument("--again", type=int, default=5, help="launches of both answers, by turns")
    parser.add_argument("--measured", type=float, default=3.0, help="seconds that a launch of the search observes")
    given = parser.parse_args(argv)
    if unknown := sorted(set(given.jobs) - SWEPT.keys()):
        parser.error(f"there is no sweep of {unknown[0]}; the jobs are {', '.join(SWEPT)}")
    headings = ("job", "own size", "tuned", "launches", "best of 16", "regret", "minutes", "items/s by size")
    table = Table(*headings, title="tune beside an exhaustive sweep", show_lines=True)
    broken = []
    for job in given.jobs or SWEPT:
        cells, kept = row(job, given)
        table.add_row(*cells)
        broken += [] if kept else [job]
    Console(width=150).print(table)
    if broken:
        print(f"Not within {100 * MOST_REGRET:.0f} % of the best in {MOST_LAUNCHES} launches: {', '.join(broken)}.")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
