"""How the devices of a page's machines differ: their rates by job, and what they are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import polars as pl

from cotenant.report.matrix import COLUMNS, MatrixRow, matrix
from cotenant.report.summary import Summary
from cotenant.results.launches import Work


def device_matrix(summary: Summary) -> tuple[list[str], list[MatrixRow]]:
    """Return the devices, and a row per job by its label: two works of one name have no common best device."""
    works: dict[str, set[Work]] = defaultdict(set)
    for job in summary.jobs:
        works[job.label] |= {one.work[:3] for one in job.rates}
    jobs = [
        job.members.columns(*COLUMNS).with_columns(
            job=pl.lit(job.label if len(works[job.label]) < 2 else f"{job.label} of {job.suite} on {job.host}")
        )
        for job in summary.jobs
    ]
    return matrix(pl.concat(jobs)) if jobs else ([], [])


def device_names(devices: Sequence[str], summary: Summary) -> list[str]:
    """Return what they are called: without accelerators a device is a slice that the tenants of its number had."""
    accelerated = (summary.records.columns("devices")["devices"] != 0).fill_null(True).any()
    return [f"D{name}" if accelerated else f"slice {name}" for name in devices]
