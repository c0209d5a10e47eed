"""Promises 7 and 8, on records of real launches: no observation is missing, and jobs ran as they were asked to.

The statistics of a record are computed again from its raw observations. The facts that it observed (dtype of the
heaviest products, items of a batch, updates of weights, ranks) are compared with the flags of the command line.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from suites import REPORT, TOY_REG, VAE, job, run_suite

from cotenant.stats.describe import describe

CONVNET = {"--repeat": 6, "--number": 1, "--batch-size": 4, "--arch": "resnet18", "--size": 32, **REPORT}
DISTRIBUTED = "./image_classification/convnets/pytorch/run_distributed.sh"
JOBS = [
    job("toy_reg", TOY_REG),
    job("vae", VAE),
    job("vae", VAE | {"--repeat": 6, "--number": 2, "--precision": "bf16"}) | {"name": "vae_bf16"},
    {"name": "convnet_distributed", "cmd": DISTRIBUTED, "args": CONVNET, "cgroup": "all"},
]


def raw(record: dict[str, Any]) -> str:
    """Return the fault of a record's observations in words, or an empty string."""
    seen, given = record["observations"], record["given"]
    if len(seen) != given["repeat"]:
        return f"{len(seen)} of {given['repeat']} observations"
    if any(len(rows) != len(seen) for rows in record["rank_observations"].values()):
        return "a rank's observations are missing"
    kept = seen[record["skip"] :]
    made = describe([one["items"] for one in kept], [(one["end_ns"] - one["start_ns"]) / 1e9 for one in kept])
    told = record["statistics"]
    if (made.n, made.median, made.interval) != (told["n"], told["median"], _pair(told["interval"])):
        return "its statistics are not those of its observations"
    return ""


def unlike(record: dict[str, Any], asked: dict[str, Any]) -> str:
    """Return the settings that ran otherwise than asked for in words, or an empty string."""
    observed = record["observed"]
    ranks = observed["world_size"]
    items = {one["items"] for one in record["observations"]}
    pairs = {
        "precision": (asked.get("--precision", "fp32"), observed["dtype"]),
        "repeat": (asked["--repeat"], len(record["observations"])),
        "items": ({asked["--number"] * asked["--batch-size"] * ranks}, items),
        "updates": (asked["--repeat"] * asked["--number"], observed["updates"]),
    }
    return ", ".join(f"{name}: asked {was}, ran {ran}" for name, (was, ran) in pairs.items() if was != ran)


def _pair(values: list[float] | None) -> tuple[float, float] | None:
    return None if values is None else (values[0], values[1])


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        records = run_suite(Path(scratch) / "asked", JOBS, "--users", "2", "--cgroup-base", "cotenant-bench")
    table, kept = Table("job", "tenant", "ranks", "observations", "raw (7)", "as asked (8)", title="Records"), True
    asked = {one["name"]: one["args"] for one in JOBS}
    for record in records:
        wrong = raw(record), unlike(record, asked[record["name"]])
        kept = kept and not any(wrong)
        ranks, seen = str(record["observed"]["world_size"]), str(len(record["observations"]))
        table.add_row(record["name"], str(record["tenant"]), ranks, seen, *(one or "kept" for one in wrong))
    Console(width=120).print(table)
    return 0 if kept and len(records) == 2 * len(JOBS) - 1 else 1


if __name__ == "__main__":
    sys.exit(main())
