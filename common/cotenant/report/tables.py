"""Systems side by side: each benchmark family's rate on each, or its batch size, one table per precision."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal, NamedTuple

import polars as pl

from cotenant.errors import CotenantError, did_you_mean
from cotenant.report.grid import Grid, Row, RowGroup
from cotenant.report.summary import JobSummary
from cotenant.results.identity import job_and_cell
from cotenant.results.launches import rates_of
from cotenant.results.read import drawn
from cotenant.results.targets import System, system_of
from cotenant.stats.launches import across_launches
from cotenant.text import printable

Kind = Literal["throughput", "batch-size"]
Per = Literal["watt", "price"]
POWER = "power_w"
INDEX = "name_gpu"
FIRST = "ssd"
UNKNOWN = "unknown"
_PRECISION = re.compile(r"_?(fp32|tf32|bf16|fp16|half|amp(_?(bf16|fp16))?)$")


@dataclass(frozen=True, slots=True)
class Entry:
    """One family on one system: items per second of all devices, the batch size, and the watt measured meanwhile."""

    rate: float
    batch_size: int | None
    watt: float | None


@dataclass(slots=True)
class Line:
    """One system. `watt` and `price` are of all its devices; None is what nobody knows."""

    name: str
    devices: int
    watt: float | None
    price: float | None
    entries: dict[str, Entry] = field(default_factory=dict)

    @property
    def usual_watt(self) -> float | None:
        """The mean over families of the watt measured; the constant where one has none; None where nobody knows."""
        measured = [entry.watt for entry in self.entries.values() if entry.watt is not None]
        if len(measured) < len(self.entries) and self.watt is not None:
            return self.watt
        return fmean(measured) if measured else None


class Under(NamedTuple):
    """What is equal for all rates of a line."""

    name: str
    host: str
    isolation: str
    torch: str


Tables = dict[str, list[Line]]


def tables(jobs: Iterable[JobSummary], systems: Sequence[System]) -> Tables:
    """Return the lines of each precision, in the order of first sight.

    Where a family ran in several cells on a system, the fastest counts. Two hosts of one system are two lines, and so
    are rates with and without slices, or of two versions of torch.
    """
    by_precision: dict[str, dict[Under, Line]] = defaultdict(dict)
    for job in jobs:
        if not job.rates:
            continue
        first = job.members.frame.row(0, named=True)
        line = _line(job, systems)
        under = Under(line.name, job.host, first["isolation"], first["software"])
        of_system = by_precision[first["precision"] or UNKNOWN].setdefault(under, line)
        entry = Entry(across_launches(rates_of(job.rates)).rate, first["batch_size"], _watt(job))
        name = family(job.name)
        if name not in of_system.entries or entry.rate > of_system.entries[name].rate:
            of_system.entries[name] = entry
    return {precision: _named(lines) for precision, lines in by_precision.items()}


def family(job: str) -> str:
    """Return a job's benchmark without cell and precision: `resnet50` of `resnet50_fp16.c2`."""
    name, _ = job_and_cell(job)
    return _PRECISION.sub("", name) or name


def families(lines: Iterable[Line]) -> list[str]:
    """Return the columns: in alphabetical order, `ssd` first."""
    return sorted({name for line in lines for name in line.entries}, key=lambda name: (name != FIRST, name))


def table_grid(lines: Sequence[Line], kind: Kind, per: Per | None = None, reference: str | None = None) -> Grid:
    """Return one precision's table, for programs alone; rates may be per watt or price, or relative to a line.

    A cell that is not known is empty. Raises CotenantError where the reference is no line.
    """
    columns = families(lines)
    values = {line.name: [_value(line, name, kind, per) for name in columns] for line in lines}
    if reference is not None:
        base = _reference(values, reference)
        values = {name: [_over(value, of) for value, of in zip(row, base, strict=True)] for name, row in values.items()}
    fields = (INDEX, "num_gpu", "watt", "price", *map(printable, columns))
    records = [(line.name, line.devices, line.usual_watt, line.price, *values[line.name]) for line in lines]
    rows = [Row(values=dict(zip(fields, record, strict=True))) for record in records]
    return Grid((), [RowGroup(rows)], fields=fields)


def sources_of_watt(lines: Iterable[Line]) -> list[str]:
    """Return a sentence for each line: where its watt comes from."""
    return [f"{line.name}: watt is {_source_of_watt(line)}." for line in lines]


def _source_of_watt(line: Line) -> str:
    measured = [name for name, entry in line.entries.items() if entry.watt is not None]
    if len(measured) == len(line.entries):
        return "measured"
    if line.watt is not None:
        part = f"; measured for {', '.join(measured)}" if measured else ""
        return f"the constant {line.watt:g} of its description{part}"
    return f"measured for {', '.join(measured)}, else unknown" if measured else "unknown"


def _line(job: JobSummary, systems: Sequence[System]) -> Line:
    rows = job.members.where(pl.col("run_id") == job.rates[0].run_id).columns("gpu", "vcd", "devices").rows()
    indices = {index for _, vcd, devices in rows for index in vcd.split(",") if devices != 0}
    gpu = rows[0][0]
    system = system_of(systems, gpu, len(indices))
    if system is None:
        model = gpu or job.host or UNKNOWN
        return Line(f"{len(indices)}x {model}" if len(indices) > 1 else model, len(indices), None, None)
    return Line(system.name, len(indices), system.watt, system.price)


def _named(lines: Mapping[Under, Line]) -> list[Line]:
    """Return the lines; where a system has several, each is named by what they differ in, too."""
    for under, line in lines.items():
        alike = [other for other in lines if other.name == under.name]
        conditions = {"host": "", "isolation": "isolation ", "torch": "torch "}
        parts = [
            f"{prefix}{getattr(under, name) or UNKNOWN}"
            for name, prefix in conditions.items()
            if len({getattr(other, name) for other in alike}) > 1
        ]
        if parts:
            line.name = f"{under.name} ({', '.join(parts)})"
    return list(lines.values())


def _watt(job: JobSummary) -> float | None:
    """Return the mean power of all devices while the launches that count were timed; None where one has no samples."""
    # The runner samples all devices and every tenant's record holds all: a device is counted once, if it is used.
    used: dict[int, set[str]] = defaultdict(set)
    for run_id, vcd in job.members.columns("run_id", "vcd").iter_rows():
        used[run_id] |= set(vcd.split(","))
    power: dict[int, dict[str, float]] = {run_id: {} for run_id in used}
    for record in drawn(job.members):
        power[record.run_id] |= {meter.of: meter.mean for meter in record.meters if meter.quantity == POWER}
    if any(devices - power[run_id].keys() for run_id, devices in used.items()):
        return None
    return fmean(sum(power[run_id][device] for device in devices) for run_id, devices in used.items())


def _value(line: Line, name: str, kind: Kind, per: Per | None) -> float | None:
    entry = line.entries.get(name)
    if entry is None:
        return None
    if kind == "batch-size":
        return entry.batch_size
    if per is None:
        return entry.rate
    return _over(entry.rate, line.price if per == "price" else entry.watt or line.watt)


def _reference(values: Mapping[str, list[float | None]], name: str) -> list[float | None]:
    if name not in values:
        raise CotenantError(
            f"There is no system '{name}'.", did_you_mean(name, values) or f"There are {', '.join(values)}."
        )
    return values[name]


def _over(value: float | None, of: float | None) -> float | None:
    return None if value is None or not of else value / of
