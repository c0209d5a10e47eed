"""Scaling of a model's training over devices and nodes: launches of equal cells, their rates and speed-ups."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import fmean, median, pstdev

from cotenant.errors import CotenantError
from cotenant.findings.rules.launches import of_efficiency
from cotenant.report import numbers
from cotenant.report.kept import n_text
from cotenant.report.summary import JobSummary
from cotenant.report.tables import family
from cotenant.report.view import Cell, Column, Row, RowGroup, View, common, measurement, with_ends
from cotenant.results.columns import equal_columns
from cotenant.results.launches import Work, difference_of, difference_words, rates_of, work_of
from cotenant.results.read import read_drawn
from cotenant.results.table import Rows
from cotenant.stats.interference import efficiency
from cotenant.stats.kept import Kept
from cotenant.stats.launches import INTERVAL_LAUNCHES, across_launches, half_width
from cotenant.text import joined, printable

WANTED_LAUNCHES = 5
NORMAL = 1.96
"""Standard deviations on either side that contain 95 % of a normal distribution."""
CONDITIONS = ("isolation", "software", "device")
"""The words of works that must be equal between launches on one device and on several."""
FIELDS = {
    "model": "the model",
    "precision": "its precision",
    "parallelism": "how its training is spread over devices: ddp, dp ...",
    "input": "files or resident",
    "foreign": "the file that others published the point in; empty for ours",
    "batch_size_per_device": "rows of a batch on each device",
    "nodes": "nodes",
    "devices": "devices of each node",
    **common("unit"),
    "launches": "launches",
    "median": "items per second over all devices, the median over launches",
    "mean": "their mean",
    **with_ends("geometric_mean", "their geometric mean", "low", "high"),
    "spread": "the standard deviation of the rates' logarithms",
    **with_ends("speedup", "the median over that of one device; null if no launch ran on one"),
    **with_ends("efficiency", "that over the number of devices"),
}
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
    """The file of a curve that others published; empty for ours."""

    def __str__(self) -> str:
        batch = f"batch {self.batch_size_per_device} per device" if self.batch_size_per_device else ""
        source = f"foreign: {self.foreign}" if self.foreign else ""
        return joined(", ", self.model, batch, self.precision, self.parallelism, self.input, source)


@dataclass(frozen=True, slots=True, eq=False)
class ScalingPoint:
    """One cell of a series: a rate per launch, in items per second over all ranks, and `efficiency`.

    `efficiency` is None if no launch ran on one device. `members` are the records of its launches; None for a point
    that others published.
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
        """The median rate over one device's on one node; None if no launch ran there."""
        return None if self.efficiency is None else self.efficiency.times(self.total_devices)


Curves = dict[Series, list[ScalingPoint]]


def curves(jobs: Iterable[JobSummary]) -> Curves:
    """Return the points of each series that owns its whole machine, smallest first.

    If any series has several points, series of one point are left out: they do not scale. Raises CotenantError for two
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
    """Return a sentence for each doubtful efficiency, and for each point that ran under other conditions than the
    single device that it is compared with."""
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
    """Return a cell's series, nodes and devices per node; None if these are unknown, or differ between nodes."""
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


def check_single(curves: Curves) -> None:
    """Raise CotenantError for several series: their points would have equal names in a table without the series."""
    if len(curves) > 1:
        points = next(iter(curves.values()))
        raise CotenantError(
            f"{points[0].key} is the key of {len(curves)} configurations: {'; '.join(map(str, curves))}.",
            "--job 'NAME.c*' picks the cells of one.",
        )


def _row(point: ScalingPoint) -> Row:
    across = across_launches(point.rates)
    low, high = across.interval or (None, None)
    row = {
        **asdict(point.series),
        "nodes": point.nodes,
        "devices": point.devices,
        "launches": across.n,
        "median": median(point.rates),
        "mean": fmean(point.rates),
        "geometric_mean": across.rate,
        "low": low,
        "high": high,
        "spread": across.spread,
    }
    for name, kept in (("speedup", point.speedup), ("efficiency", point.efficiency)):
        low, high = (kept and kept.interval) or (None, None)
        row |= {name: kept and kept.value, f"{name}_low": low, f"{name}_high": high}
    return row


def _worth(heading: str, name: str, show: str, span: str) -> list[Column]:
    """Return the columns of a share and its interval."""

    def interval(_: float, low: float | None, high: float | None, nodes: int, devices: int) -> str | Cell:
        # One device's speed-up is 1 by definition.
        ends = None if low is None or high is None else (low, high)
        return Cell() if nodes * devices == 1 else numbers.span(ends, span.format)

    ends = (name, f"{name}_low", f"{name}_high", "nodes", "devices")
    return [
        Column(heading, name, show.format, seen="screens"),
        Column("95 % interval", ends, interval, seen="screens"),
    ]


COLUMNS = (
    Column("node_num", "nodes", seen="files"),
    Column("gpu_num_per_node", "devices", seen="files"),
    Column("batch_size_per_device", seen="files"),
    Column("samples/s", "median", "{:.2f}".format, seen="files"),
    Column("speedup", show="{:.2f}".format, seen="files"),
    Column("cell", ("nodes", "devices"), "{}n{}g".format, left=True, seen="screens"),
    *measurement(
        "geometric mean",
        ("geometric_mean", "low", "high", "launches"),
        partial(n_text, over="launches"),
        once=lambda launches: launches == 1,
        seen="screens",
    ),
    *_worth("speed-up", "speedup", "{:.2f}x", "{:.2f}-{:.2f}"),
    *_worth("efficiency", "efficiency", "{:.3f}", "{:.3f}-{:.3f}"),
)


def scaling_view(curves: Curves) -> View:
    """Return a row per point, grouped by series. Markdown has the columns that other suites' readers know.

    Raises CotenantError if there is no series.
    """
    if not curves:
        raise CotenantError(
            "There are no scaling cells there.", 'They are jobs with "cgroup": "all", such as profiles with --devices.'
        )
    groups = [
        RowGroup(list(map(_row, points)), str(series), f"{series.unit or 'item'}/s over all devices")
        for series, points in curves.items()
    ]
    rows = [row for group in groups for row in group.each()]
    return View("scaling", FIELDS, rows, COLUMNS, groups, lines=[((LEGEND, "dim"),)])


def as_text(curves: Curves) -> str:
    """Return a block per point: a line per launch, or for fewer than three a line per observation of the newest.

    `+-` is the half-width of a 95 % t interval of the lines' mean. The number after it is what Horovod's and Ray's
    benchmarks print there: 1.96 standard deviations (the population's) of the lines.
    """
    return "\n".join("\n".join(_block(point)) + "\n" for points in curves.values() for point in points)


def _block(point: ScalingPoint) -> Iterator[str]:
    device = "GPU" if point.members is None or point.members.frame["devices"].max() else "CPU"
    item = "img" if point.series.unit in ("image", "") else printable(point.series.unit)
    devices, rates = point.total_devices, point.rates
    if len(rates) < INTERVAL_LAUNCHES and point.members is not None:
        newest = Rows(point.members.table, point.members.by("start_time", descending=True).at[:1])
        rates = (
            tuple(float(rate) for seen in read_drawn(newest) for rate in seen.spans.rates if math.isfinite(rate))
            or rates
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
