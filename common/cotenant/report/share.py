"""The worth of a shared device, or slice, for each number of users and each mode of sharing it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import polars as pl

from cotenant.report import numbers
from cotenant.report.alone import STEP_TIMES, BaselineWord
from cotenant.report.grid import (
    Cell,
    Column,
    Grid,
    Row,
    RowGroup,
    Words,
    place_columns,
    row,
    word,
)
from cotenant.report.kept import QUICK, kept_columns, kept_fields
from cotenant.report.price import (
    ALONE_HEADING,
    STEPS_HEADING,
    StepTimes,
    energy,
    joules_cell,
    joules_per_item,
    legends,
    steps_alone,
    steps_cell,
    steps_together,
)
from cotenant.report.summary import JobSummary, summarise
from cotenant.results.launches import grouped
from cotenant.results.table import Rows
from cotenant.stats.kept import Kept
from cotenant.stats.limits import LimitAccuracy, limit_accuracy
from cotenant.stats.multiprogram import MixMeasures, mix_measures

SLICES = "slices"
"""The mode of tenants that share processors and no device."""
_MODES = [~pl.col(name).is_in(["", "exclusive"]) for name in ("share", "share_asked")]
IS_SHARED = pl.any_horizontal(pl.col("sharers") > 1, pl.col("device_sharers") > 1, *_MODES)


@dataclass(frozen=True, slots=True)
class SharePoint:
    """Equal tenants, `sharers` on each of `devices` devices or slices.

    `measures` is None where progress is unknown: `note` says why. `entitlement` is each one's. `accuracy` is of the
    tenant that kept least, `settled_s` of the one that took longest, `steps` of the one whose slowest steps are the
    slowest. `energy` is over that alone.
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
    accuracy: LimitAccuracy | None
    settled_s: float | None
    baseline: BaselineWord
    verdict: str
    note: str
    joules_per_item: float | None = None
    energy: Kept | None = None
    steps: StepTimes | None = None
    steps_alone: StepTimes | None = None


def share_points(records: Rows) -> list[SharePoint]:
    """Return a point for each job whose tenants share, and for those of the same job alone on a slice, in order of K.

    Each directory of records is one run: another K, or mode, of the same repetition is no newer run of it.
    """
    if not len(records.where(IS_SHARED)):
        return []
    summaries = [summarise(of_run) for of_run in _by_directory(records)]
    points = [_point(job) for summary in summaries for job in summary.jobs if not job.mix and job.rates]
    shared = {place(point) for point in points if point.sharers > 1 or point.mode not in (SLICES, "exclusive")}
    table_points = [point for point in points if place(point) in shared and point.mode != "exclusive"]
    return sorted(table_points, key=lambda point: (*place(point), point.mode, point.sharers))


def _by_directory(records: Rows) -> list[Rows]:
    places = zip(records.at, records.frame["path"], strict=True)
    of_runs = grouped(places, lambda place: str(Path(place[1]).parent))
    return [Rows(records.table, [at for at, _ in of_run]) for of_run in of_runs.values()]


def place(point: SharePoint) -> tuple[str, str, str, str]:
    """Return the common properties of one table's points: suite, host, job and isolation."""
    return point.suite, point.host, point.job, point.isolation


def _point(job: JobSummary) -> SharePoint:
    columns = ("share", "share_asked", "device_sharers", "sharers", "entitlement", "settled_s", "device_load_percent")
    frame = job.members.columns(*columns)
    first = frame.row(0, named=True)
    mode = first["share"] or first["share_asked"] or SLICES
    shared_by = frame["sharers" if mode == SLICES else "device_sharers"]
    sharers = shared_by[0]
    entitlement = first["entitlement"] or 1 / sharers
    note = "" if job.alone is not None and job.alone.tenants else "not measured alone: --baseline quick, or whole"
    alone = {} if job.alone is None else {tenant: job.alone.of(tenant) for tenant in job.together.tenants}
    # Three users of two devices have two of them: one has its own.
    devices = sum(1 / users for users in shared_by) / len(job.rates)
    measures = None if note else mix_measures(job.together.tenants, alone, devices)
    if measures is None and not note:
        note = "no repetition has all tenants together and alone"
    loads = [load for load in frame["device_load_percent"] if load is not None]
    accuracy = None
    # Alone a user of an instance has that instance: what its part is of the whole device, nobody has measured.
    if measures is not None and mode != "mig":
        accuracy = limit_accuracy(measures.progress[measures.worst], entitlement, median(loads) if loads else None)
    times = {tenant: of for tenant in job.together.tenants if (of := steps_together(job, tenant)) is not None}
    slowest = max(times, key=lambda tenant: times[tenant].p99_ns, default="")
    return SharePoint(
        suite=job.suite,
        host=job.host,
        job=job.cell,
        isolation=job.isolation,
        mode=mode,
        sharers=sharers,
        devices=round(devices),
        entitlement=entitlement,
        measures=measures,
        accuracy=accuracy,
        settled_s=None if frame["settled_s"].has_nulls() else max(frame["settled_s"]),
        baseline="" if job.alone is None else job.alone.baseline,
        verdict=job.verdict,
        note=note,
        joules_per_item=joules_per_item(job),
        energy=energy([(tenant, job) for tenant in job.together.tenants]),
        steps=times.get(slowest),
        steps_alone=steps_alone(job, slowest),
    )


# The view

LEGEND = (
    "K: users on each device or slice. STP: the sum of rates over those alone, how many whole devices the shared ones "
    "are worth; ANTT: the mean slowdown; tax: 1 - STP / devices. accuracy: what the user that kept least got over what "
    "it was entitled to; unclear: its interval reaches into the 5 % around 1 and beyond; not reached: its device "
    "idled, so that the limit was never tried. Of mig a whole device is an instance. settled: when the last "
    "user's rate had come to within 5 % of its final one."
)
FIELDS = (
    *("suite", "host", "job", "isolation", "mode", "sharers", "entitlement"),
    *(field for name in ("stp", "antt", "worst_slowdown") for field in kept_fields(name)),
    *("fairness", "tax", *kept_fields("accuracy"), "limit", "settled_s", "baseline", "verdict", "note"),
    *("joules_per_item", *kept_fields("energy"), *STEP_TIMES, *(f"alone_{name}" for name in STEP_TIMES)),
)


def _measured(name: str, title: str) -> Sequence[Column[SharePoint]]:
    def of(point: SharePoint) -> Kept | None:
        measure: Kept | None = None if point.measures is None else getattr(point.measures, name)
        return measure

    return kept_columns(title, of, name)[: 3 if name == "stp" else 2]


def _plain(name: str) -> Column[SharePoint]:
    def of(point: SharePoint) -> Cell:
        if point.measures is None:
            return Cell()
        value = getattr(point.measures, name).value
        return Cell(numbers.ratio(value) if name == "fairness" else numbers.percent(value), {name: value})

    return Column(name, of)


def _settled(point: SharePoint) -> Cell:
    known = point.settled_s is not None
    return Cell(f"{point.settled_s:.1f} s" if known else numbers.ABSENT, {"settled_s": point.settled_s})


COLUMNS: Sequence[Column[SharePoint]] = (
    *place_columns(lambda point: point, "suite", "host", "job", "isolation"),
    Column("mode", lambda point: word(point.mode, "mode"), left=True),
    Column("K", lambda point: Cell(str(point.sharers), {"sharers": point.sharers})),
    Column("entitled", lambda point: Cell(numbers.ratio(point.entitlement), {"entitlement": point.entitlement})),
    *_measured("stp", "STP"),
    *_measured("antt", "ANTT"),
    *_measured("worst_slowdown", "worst slowdown"),
    _plain("fairness"),
    _plain("tax"),
    *kept_columns("accuracy", lambda point: None if point.accuracy is None else point.accuracy.accuracy, "accuracy")[
        :2
    ],
    Column("limit", lambda point: word(point.accuracy.verdict if point.accuracy else "", "limit"), left=True),
    Column("settled", _settled),
    Column("J per item", lambda point: joules_cell(point.joules_per_item), optional=True),
    *kept_columns("energy", lambda point: point.energy, "energy", optional=True)[:2],
    Column(STEPS_HEADING, lambda point: steps_cell("", point.steps), optional=True),
    Column(ALONE_HEADING, lambda point: steps_cell("alone_", point.steps_alone), optional=True),
    Column("verdict", lambda point: word(point.verdict, "verdict"), left=True),
)


def share_grid(records: Rows) -> Grid:
    """Return a table for each job: its modes, and below each other the numbers of users."""
    return points_grid(share_points(records))


def points_grid(points: Sequence[SharePoint]) -> Grid:
    """Return the same of points that are known."""
    groups = []
    for (suite, host, job, isolation), of_job in grouped(points, place).items():
        facts = f"{suite} on {host}, isolation {isolation}"
        groups.append(RowGroup([_row(point) for point in of_job], job, facts, [*_notes(of_job)]))
    document = {"schema": "cotenant-share-1", "points": [asdict(point) for point in points]}
    legend = [LEGEND, *([QUICK] if any(point.baseline == "quick" for point in points) else [])]
    legend += legends((point.energy for point in points), (point.steps for point in points))
    return Grid(COLUMNS, groups, notes=[((" ".join(legend), "dim"),)], fields=FIELDS, document=document)


def _row(point: SharePoint) -> Row:
    made = row(COLUMNS, point)
    baseline = "" if point.measures is None else point.baseline
    return Row(made.cells, {**made.record, "baseline": baseline, "note": point.note})


def _notes(points: Iterable[SharePoint]) -> Iterator[Words]:
    yield from (((f"{point.mode}, K = {point.sharers}: {point.note}", "yellow"),) for point in points if point.note)
