"""The scaling of a model's training over devices and nodes: launches of equal cells, their rates and speed-ups."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, median, pstdev

from cotenant.errors import CotenantError
from cotenant.findings.rules.launches import of_efficiency
from cotenant.report import numbers
from cotenant.report.grid import Cell, Column, Grid, Measurement, RowGroup, measured_columns, number, row
from cotenant.report.kept import counted
from cotenant.report.summary import JobSummary
from cotenant.report.tables import family
from cotenant.results.columns import equal_columns
from cotenant.results.launches import Work, difference_of, difference_words, rates_of, work_of
from cotenant.results.read import drawn
from cotenant.results.table import Rows
from cotenant.stats.interference import efficiency
from cotenant.stats.kept import Kept
from cotenant.stats.launches import INTERVAL_LAUNCHES, across_launches, half_width
from cotenant.text import joined, printable

WANTED_LAUNCHES = 5
NORMAL = 1.96
"""Standard deviations on either side that hold 95 % of a normal distribution."""
CONDITIONS = ("isolation", "software", "device")
"""The words of works that must be equal between launches on one device and on several."""
FIELDS = (
    *("model", "precision", "parallelism", "input", "foreign", "batch_size_per_device", "nodes", "devices", "unit"),
    *("launches", "median", "mean", "geometric_mean", "low", "high", "spread"),
    *("speedup", "speedup_low", "speedup_high", "efficiency", "efficiency_low", "efficiency_high"),
)
LEGEND = "speed-up: the median rate over launches, over that of one device; efficiency: over that of as many devices."


@dataclass(frozen=True, slots=True)
class Series:
    """The common properties of all points of one curve."""

    model: str
    batch_size_per_device: int | None
    precision: str
    parallelism: str
    input: str
    unit: str
    foreign: str = ""
    """The file that others published the curve in; empty for ours."""

    def __str__(self) -> str:
        batch = f"batch {self.batch_size_per_device} per device" if self.batch_size_per_device else ""
        source = f"foreign: {self.foreign}" if self.foreign else ""
        return joined(", ", self.model, batch, self.precision, self.parallelism, self.input, source)


@dataclass(frozen=True, slots=True, eq=False)
class ScalingPoint:
    """One cell of a series: `rates` in items per second over all ranks, one a launch, and their `efficiency`, None if
    no launch ran on one device.

    `members` are the records of its launches; None for a point that others published.
    """

    series: Series
    nodes: int
    devices: int
    job: str
    rates: tuple[float, ...]
    efficiency: Kept | None
    members: Rows | None

    @property
    def key(self) -> str:
        """`1n8g`: nodes, and devices of each."""
        return f"{self.nodes}n{self.devices}g"

    @property
    def total_devices(self) -> int:
        return self.nodes * self.devices

    @property
    def speedup(self) -> Kept | None:
        """The median over that of one node and one device; None if no launch ran there."""
        return None if self.efficiency is None else self.efficiency.times(self.total_devices)


Curves = dict[Series, list[ScalingPoint]]


def curves(jobs: Iterable[JobSummary]) -> Curves:
    """Return the points of each series that owns its whole machine, smallest first.

    If any series has several points, those of one point are left out: they do not scale. Raises CotenantError for two
    different configurations under one key.
    """
    cells: dict[tuple[Series, int, int], list[JobSummary]] = defaultdict(list)
    for job in jobs:
        if job.group == "all" and job.rates and (place := _place(job)) is not None:
            cells[place].append(job)
    points: Curves = defaultdict(list)
    for series, nodes, devices in sorted(cells, key=lambda place: (place[1] * place[2], place[1])):
        of_cell = cells[series, nodes, devices]
        _check_equal(f"{nodes}n{devices}g of {series}", of_cell)
        rates = tuple(rate for job in of_cell for rate in rates_of(job.rates))
        single = (point.rates for point in points[series] if point.total_devices == 1)
        worth = efficiency(nodes * devices, rates, rates if nodes * devices == 1 else next(single, ()))
        members = Rows(of_cell[0].members.table, [at for job in of_cell for at in job.members.at])
        points[series].append(ScalingPoint(series, nodes, devices, of_cell[0].name, rates, worth, members))
    several = {series: of_series for series, of_series in points.items() if len(of_series) > 1}
    return several or dict(points)


def few(curves: Curves) -> list[str]:
    """Return a sentence for each point of fewer than five launches."""
    return [
        f"{point.job}, {point.key}: {len(point.rates)} of {WANTED_LAUNCHES} launches."
        for of_series in curves.values()
        for point in of_series
        if len(point.rates) < WANTED_LAUNCHES
    ]


def doubtful(curves: Curves) -> list[str]:
    """Return a sentence for each point whose efficiency is not to be believed, and for each that ran under other
    conditions than the single device that it is compared with."""
    growing = [word for word in equal_columns() if word not in CONDITIONS]
    sentences = []
    for of_series in curves.values():
        single = [work for point in of_series if point.total_devices == 1 for work in _works(point)]
        for point in of_series:
            worth = point.efficiency
            if worth and (finding := of_efficiency(point.total_devices, worth.value, worth.interval)):
                unclear = f"It is unclear below {INTERVAL_LAUNCHES} launches on each side."
                advice = finding.remedy if worth.interval else unclear
                sentences.append(f"{point.job}, {point.key}: {finding.sentence} {advice}")
            if single and (difference := difference_of([*single, *_works(point)], growing)) is not None:
                apart = f"one device under other conditions ({difference_words(*difference)})"
                sentences.append(f"{point.job}, {point.key}: its speed-up is over {apart}.")
    return sentences


def _works(point: ScalingPoint) -> list[Work]:
    return [] if point.members is None else [work_of(row) for row in point.members.frame.iter_rows(named=True)]


def _place(job: JobSummary) -> tuple[Series, int, int] | None:
    """Return a cell's series, nodes and devices per node; None if its record does not hold the number of devices."""
    row = job.members.frame.row(0, named=True)
    total, nodes = row["world_size"] or (None if row["ours"] else len(row["vcd"].split(","))), row["nodes"]
    if total is None or total % nodes:
        return None
    series = Series(
        model=row["model"] or family(row["name"]),
        batch_size_per_device=row["batch_size_per_device"],
        precision=row["precision"],
        parallelism=row["parallelism"] or "ddp",
        input=row["input"],
        unit=row["unit"],
    )
    return series, nodes, total // nodes


def _check_equal(key: str, members: Sequence[JobSummary]) -> None:
    if (difference := difference_of([job.work for job in members if job.work is not None])) is not None:
        name, values = difference
        jobs = ", ".join(dict.fromkeys(job.label for job in members))
        what = "benchmarks or arguments" if name == "benchmark" else f"{name.replace('_', ' ')} {values}"
        raise CotenantError(
            f"Two configurations stand under {key}: different {what} ({jobs}).",
            "--job 'NAME.c*' picks the cells of one, or name a directory that holds one of them only.",
        )
    hosts = sorted({job.host for job in members})
    if len(hosts) > 1:
        raise CotenantError(
            f"Two machines stand under {key}: {' and '.join(hosts)}.", "Name a directory that holds one of them only."
        )


def of_one_series_grid(curves: Curves) -> Grid:
    """Return the grid of the only series, with its document by key, `1n8g`.

    Raises CotenantError for no series, and for several, whose keys would collide.
    """
    if not curves:
        raise CotenantError(
            "There are no scaling cells there.", 'They are jobs with "cgroup": "all", such as profiles with --devices.'
        )
    (series, points), *others = curves.items()
    if others:
        listed = "; ".join(map(str, curves))
        raise CotenantError(
            f"{points[0].key} is the key of {len(curves)} configurations: {listed}.",
            "--job 'NAME.c*' picks the cells of one.",
        )
    document = {
        point.key: {
            "average_speed": fmean(point.rates),
            "batch_size_per_device": series.batch_size_per_device,
            "median_speed": median(point.rates),
            "speedup": _speedup(point),
        }
        for point in points
    }
    return replace(scaling_grid(curves), document=document)


def _speedup(point: ScalingPoint) -> float | None:
    return None if point.speedup is None else point.speedup.value


def _cell(point: ScalingPoint) -> Cell:
    return Cell(point.key, asdict(point.series) | {"mean": fmean(point.rates)})


def _measured(point: ScalingPoint) -> Measurement:
    across = across_launches(point.rates)
    n, once = counted(across.n, "launches"), across.n == 1
    return Measurement(across.rate, across.interval, n, (across.n, across.spread), once)


def _worth(
    name: str, heading: str, of: Callable[[ScalingPoint], Kept | None], show: str, span: str
) -> Sequence[Column[ScalingPoint]]:
    """Return the columns of a share and its interval."""

    def value(point: ScalingPoint) -> Cell:
        if (kept := of(point)) is None:
            return Cell()
        low, high = kept.interval or (None, None)
        return Cell(show.format(kept.value), {name: kept.value, f"{name}_low": low, f"{name}_high": high})

    def interval(point: ScalingPoint) -> Cell:
        kept = of(point)
        # One device's speed-up is 1 by definition.
        if kept is None or point.total_devices == 1:
            return Cell()
        return Cell(numbers.span(kept.interval, span.format))

    return Column(heading, value, seen="screens"), Column("95 % interval", interval, seen="screens")


COLUMNS: Sequence[Column[ScalingPoint]] = (
    Column("node_num", lambda point: number(point.nodes, str, "nodes"), seen="files"),
    Column("gpu_num_per_node", lambda point: number(point.devices, str, "devices"), seen="files"),
    Column("batch_size_per_device", lambda point: number(point.series.batch_size_per_device, str), seen="files"),
    Column("samples/s", lambda point: number(median(point.rates), "{:.2f}".format, "median"), seen="files"),
    Column("speedup", lambda point: number(_speedup(point), "{:.2f}".format), seen="files"),
    Column("cell", _cell, left=True, seen="screens"),
    *measured_columns(
        "geometric mean", _measured, ("geometric_mean", "low", "high", "launches", "spread"), seen="screens"
    ),
    *_worth("speedup", "speed-up", lambda point: point.speedup, "{:.2f}x", "{:.2f}-{:.2f}"),
    *_worth("efficiency", "efficiency", lambda point: point.efficiency, "{:.3f}", "{:.3f}-{:.3f}"),
)


def scaling_grid(curves: Curves) -> Grid:
    """Return a row per point, grouped by series. Markdown has the columns that other suites' readers know."""
    groups = [
        RowGroup([row(COLUMNS, point) for point in points], str(series), f"{series.unit or 'item'}/s over all devices")
        for series, points in curves.items()
    ]
    return Grid(COLUMNS, groups, notes=[((LEGEND, "dim"),)], fields=FIELDS)


def as_text(curves: Curves) -> str:
    """Return a block per point: a line for each launch, or if these are fewer than three, for each observation of the
    newest.

    `+-` is the half-width of a 95 % t interval of the mean of these lines. Behind it stands the number that Horovod's
    and Ray's benchmarks print there: 1.96 standard deviations (the population's) of the lines.
    """
    return "\n".join("\n".join(_block(point)) + "\n" for points in curves.values() for point in points)


def _block(point: ScalingPoint) -> Iterator[str]:
    device = "GPU" if point.members is None or point.members.frame["devices"].max() else "CPU"
    item = "img" if point.series.unit in ("image", "") else printable(point.series.unit)
    devices, rates = point.total_devices, point.rates
    if len(rates) < INTERVAL_LAUNCHES and point.members is not None:
        newest = Rows(point.members.table, point.members.by("start_time", descending=True).at[:1])
        rates = (
            tuple(float(rate) for seen in drawn(newest) for rate in seen.spans.rates if math.isfinite(rate)) or rates
        )
    source = f" (foreign: {printable(point.series.foreign)})" if point.series.foreign else ""
    yield f"Model: {printable(point.series.model)}{source}"
    yield f"Batch size: {point.series.batch_size_per_device or numbers.ABSENT}"
    yield f"Number of {device}s: {devices}"
    for index, rate in enumerate(rates):
        yield f"Iter #{index}: {rate / devices:.1f} {item}/sec per {device}"
    mean, half, theirs = fmean(rates), half_width(rates), NORMAL * pstdev(rates)
    whole = (f"{item.capitalize()}/sec per {device}", devices), (f"Total {item}/sec on {devices} {device}(s)", 1)
    for title, parts in whole:
        ours = numbers.TOO_SMALL if half is None else f"{half / parts:.1f} (1.96 sd: +-{theirs / parts:.1f})"
        yield f"{title}: {mean / parts:.1f} +-{ours}"
