"""The worth of a shared device, or slice, for each number of users and each mode of sharing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cotenant.frames import pl
from cotenant.report import numbers
from cotenant.report.alone import BaselineWord
from cotenant.report.beside import SLICES, StepTimes, measured, tenants_of, watts, why_not
from cotenant.report.grid import Cell, Column, Grid, RowGroup, number, place_columns, row, text_column
from cotenant.report.kept import (
    OF_ENERGY,
    OF_STEPS,
    QUICK,
    STEP_FIELDS,
    STEPS,
    explained,
    kept_columns,
    kept_fields,
)
from cotenant.report.summary import JobSummary, summarise
from cotenant.results.launches import grouped
from cotenant.results.table import Rows
from cotenant.stats.interference import MixMeasures, ratios
from cotenant.stats.kept import Kept
from cotenant.stats.launches import across_launches

EXCLUSIVE = "exclusive"
"""The mode of a tenant that has its device to itself."""
_MODES = [~pl.col(name).is_in(["", EXCLUSIVE]) for name in ("share", "share_asked")]
IS_SHARED = pl.any_horizontal(pl.col("sharers") > 1, pl.col("device_sharers") > 1, *_MODES)


@dataclass(frozen=True, slots=True)
class SharePoint:
    """Equal tenants, `sharers` on each of `devices` devices or slices.

    `measures` is None if progress is unknown: `note` says why. `entitlement` is one tenant's. `steps` are those
    of the tenant with the slowest p99. `energy` is together over alone.
    """

    suite: str
    host: str
    job: str
    isolation: str
    mode: str
    sharers: int
    devices: int
    entitlement: float
    measures: MixMeasures | None
    baseline: BaselineWord
    verdict: str
    note: str
    joules_per_item: float | None
    energy: Kept | None
    steps: StepTimes | None
    steps_alone: StepTimes | None

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Suite, host, job and isolation: points of one place are one table."""
        return self.suite, self.host, self.job, self.isolation


def share_points(records: Rows) -> list[SharePoint]:
    """Return a point for each job whose tenants share, and for the same job unshared, in order of K.

    Each directory of records is one run, so that another K, or mode, does not replace the same repetition's records.
    """
    if not len(records.where(IS_SHARED)):
        return []
    places = zip(records.at, records.frame["path"], strict=True)
    of_runs = grouped(places, lambda place: str(Path(place[1]).parent)).values()
    runs = (summarise(Rows(records.table, [at for at, _ in of_run])).jobs for of_run in of_runs)
    points = [_point(job) for jobs in runs for job in jobs if not job.mix and job.rates]
    shared = {point.place for point in points if point.sharers > 1 or point.mode not in (SLICES, EXCLUSIVE)}
    of_tables = [point for point in points if point.place in shared and point.mode != EXCLUSIVE]
    return sorted(of_tables, key=lambda point: (*point.place, point.mode, point.sharers))


def _point(job: JobSummary) -> SharePoint:
    tenants, note = tenants_of(job), why_not(job)
    first, slowest = tenants[0], max(tenants, key=lambda of: 0.0 if of.steps is None else of.steps.p99_ns)
    measures, energy = (None, None) if note else measured([job], tenants)
    if measures is None:
        note = note or "no repetition has all users together and alone"
    joules = ratios(watts([job]), job.together.node)
    return SharePoint(
        suite=job.suite,
        host=job.host,
        job=job.cell,
        isolation=job.isolation,
        mode=first.mode,
        sharers=first.sharers,
        # For three tenants on two devices the sum is two: 1/2 + 1/2 + 1.
        devices=round(sum(1 / tenant.sharers for tenant in tenants)),
        entitlement=job.members.columns("entitlement")["entitlement"][0] or 1 / first.sharers,
        measures=measures,
        baseline=first.baseline,
        verdict=job.verdict,
        note=note,
        joules_per_item=across_launches([*joules.values()]).rate if joules else None,
        energy=energy,
        steps=slowest.steps,
        steps_alone=slowest.steps_alone if slowest.steps else None,
    )


# The view

LEGEND = (
    "K: users on each device or slice. STP: the sum of rates over those alone, how many whole devices the shared ones "
    "are worth; ANTT: the mean slowdown; tax: 1 - STP / devices."
)
FIELDS = (
    *("suite", "host", "job", "isolation", "mode", "sharers", "entitlement"),
    *(field for name in ("stp", "antt", "worst_slowdown") for field in kept_fields(name)),
    *("fairness", "tax", "baseline", "verdict", "note"),
    *("joules_per_item", *kept_fields("energy"), *STEP_FIELDS),
)


def _measured(name: str, title: str) -> Sequence[Column[SharePoint]]:
    return kept_columns(title, lambda point: getattr(point.measures, name, None), name)


COLUMNS: Sequence[Column[SharePoint]] = (
    *place_columns(lambda point: point, "suite", "host", "job", "isolation"),
    text_column("mode", lambda point: point.mode, "mode"),
    Column("K", lambda point: number(point.sharers, str, "sharers")),
    Column("entitled", lambda point: number(point.entitlement, numbers.ratio, "entitlement")),
    *_measured("stp", "STP"),
    *_measured("antt", "ANTT")[:2],
    *_measured("worst_slowdown", "worst slowdown")[:2],
    *_measured("fairness", "fairness")[:1],
    Column("tax", lambda point: number(point.measures.tax.value if point.measures else None, numbers.percent, "tax")),
    Column(
        "J per item", lambda point: number(point.joules_per_item, "{:.3g}".format, "joules_per_item"), optional=True
    ),
    *kept_columns("energy", lambda point: point.energy, "energy", optional=True)[:2],
    *STEPS,
    Column(
        "verdict",
        lambda point: Cell(
            point.verdict,
            {"verdict": point.verdict, "baseline": point.baseline if point.measures else "", "note": point.note},
        ),
        left=True,
    ),
)


def share_grid(points: Sequence[SharePoint]) -> Grid:
    """Return a table for each job, with a row for each mode and number of users."""
    groups = [
        RowGroup(
            [row(COLUMNS, point) for point in of_job],
            job,
            f"{suite} on {host}, isolation {isolation}",
            [((f"{point.mode}, K = {point.sharers}: {point.note}", "yellow"),) for point in of_job if point.note],
        )
        for (suite, host, job, isolation), of_job in grouped(points, lambda point: point.place).items()
    ]
    document = {"schema": "cotenant-share-1", "points": [asdict(point) for point in points]}
    texts = {
        LEGEND: True,
        QUICK: any(point.baseline == "quick" for point in points),
        OF_ENERGY: any(point.energy for point in points),
        OF_STEPS: any(point.steps for point in points),
    }
    return Grid(COLUMNS, groups, notes=explained(texts), fields=FIELDS, document=document)
