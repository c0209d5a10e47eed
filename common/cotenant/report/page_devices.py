"""How the devices of a page's machines differ: their rates by job, and what they are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import polars as pl

from cotenant.report.mlbench import MatrixRow, Rates, matrix_of
from cotenant.report.summary import Summary

_COUNTS = pl.col("completed") & ~pl.col("invalid") & (pl.col("losses_non_finite") == 0) & (pl.col("group") != "all")
_RATE = "rate_mean_items_s"


def device_matrix(summary: Summary) -> tuple[list[str], list[MatrixRow]]:
    """Return the devices, and a row per job that ran on single devices, as `mlbench.matrix` does.

    A row has the job's label: two works of one name have no common best device.
    """
    single = [
        job.members.where(_COUNTS).columns("hostname", "vcd", _RATE).with_columns(label=pl.lit(job.label))
        for job in summary.jobs
    ]
    if not single:
        return [], []
    rate = pl.col(_RATE)
    grouped = pl.concat(single).drop_nulls(_RATE).group_by("label", "hostname", "vcd", maintain_order=True)
    found = grouped.agg(mean=rate.mean(), least=rate.min(), most=rate.max())
    several_hosts = found["hostname"].n_unique() > 1
    rates: dict[str, dict[str, Rates]] = defaultdict(dict)
    for label, host, device, mean, least, most in found.iter_rows():
        rates[label][f"{host}:{device}" if several_hosts else device] = (mean, least, most)
    return matrix_of(rates)


def device_names(devices: Sequence[str], summary: Summary) -> list[str]:
    """Return what they are called: without accelerators a device is a slice that the tenants of its number had."""
    accelerated = (summary.details.columns("devices")["devices"] != 0).fill_null(True).any()
    return [f"D{name}" if accelerated else f"slice {name}" for name in devices]
