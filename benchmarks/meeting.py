"""Promises 3 and 4: start skew, overlap, and the runner's processor share, over launches of real tenants."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path

from pairs import median_of
from rich.console import Console
from rich.table import Table
from suites import TOY_REG, VAE, job, run_suite

LAUNCHES = 20


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        records = run_suite(Path(scratch) / "meeting", [job("toy_reg", TOY_REG)] * LAUNCHES + [job("vae", VAE)] * 5)
    table = Table("what", "median", "95 % interval", "worst", "launches", "promise", title="How tenants meet")
    for name, enough in (("toy_reg", LAUNCHES), ("vae", 5)):
        launches = defaultdict(list)
        for record in records:
            if record["name"].partition("-")[0] == name:
                launches[record["start_time"]].append(record)
        assert len(launches) == enough
        skews = [max(r["rendezvous"]["start_skew_ns"] for r in group) / 1e3 for group in launches.values()]
        overlaps = [min(r["rendezvous"]["overlap"] for r in group) for group in launches.values()]
        shares = [group[0]["meters"]["runner_processor_share"] * 100 for group in launches.values()]
        for what, values, worst, unit, promise in (
            ("start skew", skews, max(skews), "us", "median < 1000 us"),
            ("overlap", overlaps, min(overlaps), "", ">= 0.99"),
            ("runner's share of a processor", shares, max(shares), "%", "< 1 %"),
        ):
            one = median_of(values)
            interval = f"{one.low:.4g} .. {one.high:.4g}" if one.n >= 6 else "too few"
            table.add_row(
                f"{name}: {what}", f"{one.value:.4g} {unit}", interval, f"{worst:.4g} {unit}", str(one.n), promise
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
