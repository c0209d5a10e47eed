"""What slices are worth: the total rate of two tenants with slices and without, in turns, in one run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table
from suites import REPORT, TOY_REG, job, run_suite

ROUNDS = 3
# Small: without slices some of them take thirty times as long.
JOBS = {
    "toy_reg": TOY_REG,
    "toy_lstm": {"--repeat": 9, "--number": 1, "--length": 30, **REPORT},
    "vae": {"--repeat": 9, "--number": 5, "--batch-size": 128, **REPORT},
}


def totals(directory: Path, *flags: str) -> dict[str, float]:
    """Return the sum over tenants of the median rates, per job, in items per second."""
    rates: dict[str, float] = dict.fromkeys(JOBS, 0.0)
    for record in run_suite(directory, [job(name, args) for name, args in JOBS.items()], "--users", "2", *flags):
        rates[record["name"]] += record["statistics"]["median"]
    return rates


def main() -> None:
    sliced, naive = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(ROUNDS):
            sliced.append(totals(Path(scratch) / f"sliced{turn}"))
            naive.append(totals(Path(scratch) / f"naive{turn}", "--isolation", "none"))
    table = Table(
        "job", "with slices, items/s", "--isolation none", "ratio: median", "worst .. best", "rounds",
        title="Two tenants together: total rate",
    )  # fmt: skip
    for name in JOBS:
        ratios = sorted(a[name] / b[name] for a, b in zip(sliced, naive, strict=True))
        row = [f"{median(one[name] for one in side):,.4g}" for side in (sliced, naive)]
        table.add_row(name, *row, f"{median(ratios):.2f}", f"{ratios[0]:.2f} .. {ratios[-1]:.2f}", str(ROUNDS))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
