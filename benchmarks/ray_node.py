"""A Ray fleet of one node beside the local launcher: what launching costs, and whether the rates agree.

python benchmarks/run.py ray_node [--pairs 5] [--name JOB] [--ray DIR]

By turns: `run` itself, and `fleet run` on a cluster of one node that is up already. Seconds are of the whole command,
to its table; rates are those of the records. `--ray` is where `pip install --target DIR ray` put it, if it is not
installed. Without the name of a job of profiles/cpu.json a tenant without torch runs, whose own start costs little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table

from cotenant.results.read import read_records
from cotenant.stats.comparison import compare
from cotenant.stats.launches import across_launches
from cotenant.stats.verdict import Verdict

ROOT = Path(__file__).resolve().parents[1]
PORT = 6417
AMOUNT = ["--", "--repeat", "20", "--number", "20"]
LIGHT = {"name": "sums", "cmd": str(ROOT / "tests/tenants/sums.py"), "args": {"--repeat": 20}, "cgroup": "student"}


@contextmanager
def ray_node(environment: dict[str, str], folder: Path) -> Iterator[None]:
    """A cluster of one node, which ends with its process."""
    words = ["start", "--head", "--block", "--port", str(PORT), "--include-dashboard=false", "--temp-dir", str(folder)]
    line = [sys.executable, "-c", "from ray.scripts.scripts import main; main()", *words]
    log = folder.with_suffix(".log")
    with log.open("wb") as file:
        node = subprocess.Popen(
            [*line, "--node-ip-address", "127.0.0.1", "--node-name", "one", "--disable-usage-stats"],
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + 120
        while b"Ray runtime started" not in log.read_bytes():
            if node.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"Ray does not start: {log.read_text()[-800:]}")
            time.sleep(0.1)
        yield
    finally:
        node.terminate()
        node.wait(60)


def timed(words: list[str], environment: dict[str, str]) -> float:
    """Return the seconds of a command of ours that has to pass."""
    start_s = time.monotonic()
    line = [sys.executable, str(ROOT / "run.py"), *words]
    ended = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{words}: {ended.stdout}{ended.stderr}")
    return time.monotonic() - start_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--name", default="")
    parser.add_argument("--ray", default="")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as folder:
        top = Path(folder)
        path = os.pathsep.join(filter(None, [str(ROOT / "common"), given.ray]))
        environment = os.environ | {"PYTHONPATH": path, "BASE": str(top / "base"), "RAY_USAGE_STATS_ENABLED": "0"}
        (top / "light.json").write_text(json.dumps([LIGHT]))
        what = ["--jobs", "cpu", "--name", given.name] if given.name else ["--jobs", str(top / "light.json")]
        seconds: dict[str, list[float]] = {"local": [], "ray": []}
        with ray_node(environment, top / "r"):
            for uid in range(given.pairs):
                local = ["run", *what, "--outdir", str(top / "local"), "--uid", str(uid), *AMOUNT]
                fleet = ["fleet", "run", "--address", f"127.0.0.1:{PORT}", *what, "--outdir", str(top / "ray")]
                turns = {"local": local, "ray": [*fleet, "--uid", str(uid), "--", *AMOUNT]}
                for side in sorted(turns, reverse=bool(uid % 2)):
                    seconds[side].append(timed(turns[side], environment))
                    print(f"repetition {uid}, {side}: {seconds[side][-1]:.2f} s", flush=True)
        result = compare(node_rates(top / "local"), node_rates(top / "ray"))
        table = Table(title=f"{given.name or LIGHT['name']} on one node, {given.pairs} pairs of launches")
        for heading in ("launcher", "seconds, median", "lowest .. highest", "items/s, geometric mean"):
            table.add_column(heading)
        for side, taken in seconds.items():
            ordered = sorted(taken)
            middle = across_launches(node_rates(top / side)).rate
            table.add_row(
                side, f"{ordered[len(ordered) // 2]:.2f}", f"{ordered[0]:.2f} .. {ordered[-1]:.2f}", f"{middle:.1f}"
            )
        Console(width=100).print(table)
    interval = "" if result.interval is None else f" ({result.interval[0]:.4f} .. {result.interval[1]:.4f})"
    print(f"rate, Ray over local: {result.ratio:.4f}{interval}: {result.verdict}")
    return int(result.verdict in (Verdict.FASTER, Verdict.SLOWER))


def node_rates(place: Path) -> list[float]:
    """Return the rate of the node in each repetition: the sum over its tenants."""
    frame = read_records([place]).frame
    rates = frame.group_by("run_id").agg(pl.col("rate_items_s").sum()).sort("run_id")
    return rates["rate_items_s"].to_list()


if __name__ == "__main__":
    sys.exit(main())
