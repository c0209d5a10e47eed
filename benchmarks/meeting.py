"""Promises 3 and 4: start skew, overlap, and the runner's processor share, over launches of real tenants."""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from pairs import median_of
from promises import Promise
from rich.console import Console
from rich.table import Table
from suites import TOY_REG, VAE, job, run_suite

LAUNCHES = 20
WORST = "worst"
SKEW = Promise("<", 1000, "us", "median")
OVERLAP = Promise(">=", 0.99, of=WORST)
SHARE = Promise("<", 1, "%", WORST)


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        records = run_suite(Path(scratch) / "meeting", [job("toy_reg", TOY_REG)] * LAUNCHES + [job("vae", VAE)] * 5)
    table = Table("what", "median", "95 % interval", "worst", "launches", "promise", title="How tenants meet")
    kept = True
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
            ("start skew", skews, max(skews), "us", SKEW),
            ("overlap", overlaps, min(overlaps), "", OVERLAP),
            ("runner's share of a processor", shares, max(shares), "%", SHARE),
        ):
            one = median_of(values)
            judged = worst if promise.of == WORST else one.value
            kept = kept and promise.kept(judged)
            interval = f"{one.low:.4g} .. {one.high:.4g}" if one.n >= 6 else "too few"
            shown = [f"{one.value:.4g} {unit}", interval, f"{worst:.4g} {unit}", str(one.n), promise.verdict(judged)]
            table.add_row(f"{name}: {what}", *shown)
    Console(width=120).print(table)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
