"""The device matrix: the rates of each job over devices, as shares of the best device's mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from cotenant.frames import pl
from cotenant.report.mlbench import RATE
from cotenant.report.summary import Summary
from cotenant.report.view import Cell, Column, RowGroup, View, common
from cotenant.results.columns import COUNTS
from cotenant.results.identity import natural
from cotenant.results.launches import Work

STEPS = ((0.9, "green"), (0.8, "yellow"), (0.7, "dark_orange"), (0.0, "red"))
COLUMNS = ("hostname", "vcd", "group", "completed", "invalid", "losses_non_finite", "rate_items_s", RATE)

Shares = tuple[float, float, float]
"""The mean, the least and the greatest of some records' rates, as shares of the best device's mean."""


Matrix = Mapping[str, Mapping[str, Shares]]
"""The shares of each job on each device."""
FIELDS = {
    **common("job"),
    "device": "the number of the device; with several hosts host:number",
    "mean": "the mean rate of its records, as a share of the best device's mean",
    "least": "the least of them, as such a share",
    "most": "the greatest of them",
}


def matrix(
    records: pl.DataFrame, column: str = RATE, mean: Callable[[pl.Expr], pl.Expr] = pl.Expr.mean
) -> tuple[list[str], Matrix]:
    """Return the devices, and a row per job that ran on single devices; records of the whole machine are left out.

    `records` has COLUMNS, and `job`, the name of a row. With several hosts a device is `host:device`. `column` has
    the rates: the mean of a record's observations (the original's rate) or their median.
    """
    rate = pl.col(column)
    counted = records.filter(COUNTS, pl.col("group") != "all", rate.is_not_null())
    of_devices = counted.group_by("job", "hostname", "vcd", maintain_order=True)
    rates = of_devices.agg(mean=mean(rate), least=rate.min(), most=rate.max())
    several_hosts = rates["hostname"].n_unique() > 1
    shares = rates.with_columns(pl.col("mean", "least", "most") / pl.col("mean").max().over("job"))
    jobs: dict[str, dict[str, Shares]] = defaultdict(dict)
    for job, host, vcd, middle, least, most in shares.iter_rows():
        jobs[job][f"{host}:{vcd}" if several_hosts else vcd] = middle, least, most
    return sorted({name for of_job in jobs.values() for name in of_job}, key=_natural), jobs


def matrix_view(devices: Sequence[str], names: Sequence[str], jobs: Matrix, title: str = "", facts: str = "") -> View:
    """Return a row per job and device; for people a row per job and a column per device.

    A cell has the mean, and lowest .. highest, in % of the best device.
    """
    columns = [Column("job", left=True)]
    columns += [Column(name, f"on {device}", _cell) for device, name in zip(devices, names, strict=True)]
    shown = [{"job": job} | {f"on {device}": shares.get(device) for device in devices} for job, shares in jobs.items()]
    rows = [
        dict(zip(FIELDS, (job, device, *of_device), strict=True))
        for job, shares in jobs.items()
        for device, of_device in shares.items()
    ]
    return View("devices", FIELDS, rows, columns, [RowGroup(shown, title, facts)])


def _cell(shares: Shares) -> Cell:
    """Return a cell with a colour from none, for the best device, to full at 70 % of its rate and below."""
    mean, low, high = (100 * share for share in shares)
    heat = round(min(100.0, max(0.0, (100 - mean) / 0.3)))
    return Cell(f"{mean:.1f}", style=colour(shares[0]), note=f"({low:.1f} .. {high:.1f})", heat=heat)


def colour(share: float) -> str:
    """Return the colour of a share of the best: it changes at 90, 80 and 70 %."""
    return next(name for least, name in STEPS if share >= least)


def _natural(device: str) -> tuple[str, int, str]:
    host, _, index = device.rpartition(":")
    return host, *natural(index)


def device_matrix(summary: Summary) -> tuple[list[str], Matrix]:
    """Return the devices, and a row per job label with the job's rates: geometric means of medians.

    Different works of one name are separate rows, since they have no common best device; mixes are left out.
    """
    works: dict[str, set[Work]] = defaultdict(set)
    for job in summary.jobs:
        works[job.label] |= {launch.work[:3] for launch in job.rates}
    jobs = [
        job.members.columns(*COLUMNS).with_columns(
            job=pl.lit(job.label if len(works[job.label]) < 2 else f"{job.label} of {job.suite} on {job.host}")
        )
        for job in summary.jobs
        if not job.mix
    ]
    return matrix(pl.concat(jobs), "rate_items_s", lambda rates: rates.log().mean().exp()) if jobs else ([], {})


def device_names(devices: Sequence[str], summary: Summary) -> list[str]:
    """Return the devices' names; without accelerators a device is the slice of the tenant with its number."""
    accelerated = (summary.records.columns("devices")["devices"] != 0).fill_null(True).any()
    return [f"D{name}" if accelerated else f"slice {name}" for name in devices]
