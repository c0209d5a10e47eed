"""Systems side by side: the rate, or batch size, of each benchmark family on each system, one table per precision.

All rates of a column are of equal work: two models of one name have a column each. Copies of a model, one per device,
have other columns and rows than one model trained over several devices.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal, NamedTuple

from cotenant.errors import CotenantError, did_you_mean
from cotenant.frames import pl
from cotenant.report import numbers
from cotenant.report.summary import JobSummary
from cotenant.report.view import Column, View
from cotenant.results.identity import job_and_cell
from cotenant.results.launches import grouped, rates_of
from cotenant.results.read import read_drawn
from cotenant.results.targets import System, system_of
from cotenant.stats.launches import across_launches
from cotenant.suite.sizes import WHOLE
from cotenant.text import joined, many, printable

Kind = Literal["throughput", "batch-size"]
Per = Literal["watt", "price"]
POWER = "power_w"
INDEX = "name_gpu"
SYSTEM = {INDEX: "the name of the system, with the conditions in which rows of one system differ"}
OF_SYSTEM = {
    **SYSTEM,
    "num_gpu": "its devices",
    "watt": "its mean power, measured or by its description; null if unknown",
    "price": "its price, by its description; null if unknown",
}
FIRST = "ssd"
PLAIN = "fp32"
UNKNOWN = "unknown"
_PRECISION = re.compile(r"_?(fp32|tf32|bf16|fp16|half|amp(_?(bf16|fp16))?)$")


class ColumnWork(NamedTuple):
    """The work of a column. `shape` has the arguments that decide its items' work as JSON, empty if unknown.

    `whole`: one model over all devices of a row, not a copy on each.
    """

    family: str
    shape: str = ""
    whole: bool = False

    @property
    def arguments(self) -> dict[str, object]:
        arguments: dict[str, object] = json.loads(self.shape or "{}")
        return arguments


class Entry(NamedTuple):
    """One family on one system: items per second of all devices, the batch size, and the watts measured with it.

    `work` is equal for entries that differ only in precision; empty if unknown.
    """

    rate: float
    batch_size: int | None
    watt: float | None
    work: str = ""


@dataclass(slots=True)
class Line:
    """One system under one set of `conditions`, each by the word before it in the line's name.

    `members` is the number of copies that trained on it, or of devices or ranks of a `whole` line's one model.
    """

    system: System
    conditions: Mapping[str, str]
    entries: dict[ColumnWork, Entry] = field(default_factory=dict)
    name: str = ""
    whole: bool = False
    members: int = 1

    @property
    def key(self) -> tuple[Hashable, ...]:
        """System, form and conditions: lines of one key are compared."""
        return self.system.name, self.whole, self.members, *self.conditions.values()

    @property
    def form(self) -> str:
        """The form in words: copies, or one model."""
        where = "device" if self.system.devices else "rank"
        if self.whole:
            return f"one model over {many(self.members, where)}"
        return f"{self.members} copies, each trained by itself" if self.members > 1 else "one copy"

    @property
    def usual_watt(self) -> float | None:
        """The mean of the families' measured watts; the system's constant if a family has none; None without either."""
        measured = [entry.watt for entry in self.entries.values() if entry.watt is not None]
        if len(measured) < max(1, len(self.entries)) and self.system.watt is not None:
            return self.system.watt
        return fmean(measured) if measured else None


Tables = dict[str, list[Line]]


def tables(jobs: Iterable[JobSummary], systems: Sequence[System]) -> Tables:
    """Return the lines of each precision, in the order of their first jobs.

    If a family ran in several cells on a system, the fastest counts. Each host, number of copies, isolation and version
    of torch has its own line. Rates in a mix are left out.
    """
    by_precision: dict[str, dict[Hashable, Line]] = defaultdict(dict)
    for job in (job for job in jobs if job.rates and not job.mix):
        first = job.members.frame.row(0, named=True)
        conditions = {"": job.host, "isolation ": first["isolation"], "torch ": first["software"]}
        whole = job.group == "all"
        members = (first["world_size"] or len(first["vcd"].split(","))) if whole else first["tenants"] or 1
        line = Line(_system(job, systems), conditions, whole=whole, members=members)
        entries = by_precision[first["precision"] or UNKNOWN].setdefault(line.key, line).entries
        rate = across_launches(rates_of(job.rates)).rate
        entry = Entry(rate, first["batch_size"], _watt(job), first["work_but_precision"])
        work = ColumnWork(family(job.name), first["shape"], whole)
        entries[work] = max(entries.get(work, entry), entry, key=lambda cell: cell.rate)
    for lines in by_precision.values():
        for line in lines.values():
            line.name = _name(line, [other for other in lines.values() if other.system.name == line.system.name])
    return {precision: list(lines.values()) for precision, lines in by_precision.items()}


def _name(line: Line, alike: Sequence[Line]) -> str:
    """Return the system's name, with the form of one model or the number of copies, and the conditions in which its
    lines differ."""
    several = len({other.members for other in alike if not other.whole}) > 1
    copies = f"{line.members} {'copies' if line.members > 1 else 'copy'}"
    parts = [line.form] if line.whole else [copies] * several
    for prefix, value in line.conditions.items():
        if len({other.conditions[prefix] for other in alike}) > 1:
            parts.append(f"{prefix}{value or UNKNOWN}")
    return f"{line.system.name} ({', '.join(parts)})" if parts else line.system.name


def family(job: str) -> str:
    """Return a job's benchmark without cell, precision and form: `resnet50` of `resnet50_fp16.c2`, `resnet50_all`."""
    name, _ = job_and_cell(job)
    return (_PRECISION.sub("", name) or name).removesuffix(WHOLE)


def works(lines: Iterable[Line]) -> dict[ColumnWork, str]:
    """Return the columns with their names, `ssd` first, the others in alphabetical order."""
    found = {work for line in lines for work in line.entries}
    return {
        work: _title(work, [other for other in found if other.family == work.family])
        for work in sorted(found, key=lambda work: (work.family != FIRST, work.family, work.whole, work.shape))
    }


def _title(work: ColumnWork, alike: Sequence[ColumnWork]) -> str:
    """Return a column's name: the family, the arguments in which it differs from the family's others, and its form."""
    shapes = [other.arguments for other in alike if other.shape]
    notes = [] if work.shape or not shapes else [f"{UNKNOWN} work"]
    for name, value in sorted(work.arguments.items()):
        if len({json.dumps(shape[name]) if name in shape else "" for shape in shapes}) > 1:
            notes.append(f"{name} {' '.join(map(str, value)) if isinstance(value, list) else value}")
    if work.whole:
        notes.append("one model")
    return f"{work.family} ({'; '.join(notes)})" if notes else work.family


def systems_view(lines: Sequence[Line], kind: Kind, per: Per | None = None, reference: str | None = None) -> View:
    """Return one precision's table, for programs alone; rates may be per watt or price, or relative to a line.

    An unknown cell is null. The first line named `reference` is the reference; published lines may share a name. Raises
    CotenantError if no line has this name.
    """
    columns, names = works(lines), [line.name for line in lines]
    values = [[_value(line, work, kind, per) for work in columns] for line in lines]
    if reference is not None:
        if reference not in names:
            hint = did_you_mean(reference, names) or f"There are {', '.join(names)}."
            raise CotenantError(f"There is no system '{reference}'.", hint)
        whole = values[names.index(reference)]
        values = [[*map(_over, of_line, whole)] for of_line in values]
    meaning = "its batch size" if kind == "batch-size" else "items per second of all its devices"
    meaning += f" per {per}" if per else ""
    meaning += f", over that of {reference}" if reference else ""
    fields = {**OF_SYSTEM, **dict.fromkeys(map(printable, columns.values()), meaning)}
    rows = [
        dict(zip(fields, (line.name, line.system.devices, line.usual_watt, line.system.price, *of_line), strict=True))
        for line, of_line in zip(lines, values, strict=True)
    ]
    return View(kind, fields, rows)


def _value(line: Line, work: ColumnWork, kind: Kind, per: Per | None) -> float | None:
    entry = line.entries.get(work)
    if entry is None:
        return None
    if kind == "batch-size":
        return entry.batch_size
    if per is None:
        return entry.rate
    return _over(entry.rate, line.system.price if per == "price" else entry.watt or line.system.watt)


def _over(value: float | None, divisor: float | None) -> float | None:
    return None if value is None or not divisor else value / divisor


def forms(lines: Iterable[Line]) -> list[str]:
    """Return a sentence for each line: whether its rates are of copies, or of one model over all devices."""
    return [f"{line.name}: {line.form}." for line in lines]


def sources_of_watt(lines: Iterable[Line]) -> list[str]:
    """Return a sentence for each line: the source of its watts."""
    return [f"{line.name}: watt is {_source_of_watt(line)}." for line in lines]


def _source_of_watt(line: Line) -> str:
    families = [work.family for work, entry in line.entries.items() if entry.watt is not None]
    if families and len(families) == len(line.entries):
        return "measured"
    measured = f"measured for {', '.join(families)}" if families else ""
    if line.system.watt is not None:
        return joined("; ", f"the constant {line.system.watt:g} of its description", measured)
    return f"{measured}, else unknown" if measured else "unknown"


def _system(job: JobSummary, systems: Sequence[System]) -> System:
    """Return the system in `systems` that a job ran on, else one named after its devices."""
    rows = job.members.where(pl.col("run_id") == job.rates[0].run_id).columns("gpu", "vcd", "devices").rows()
    count = len({index for _, vcd, devices in rows for index in vcd.split(",") if devices != 0})
    gpu = rows[0][0]
    model = gpu or job.host or UNKNOWN
    return system_of(systems, gpu, count) or System(f"{count}x {model}" if count > 1 else model, gpu, count)


def _watt(job: JobSummary) -> float | None:
    """Return the mean power of all devices while the launches that count were timed; None if a launch has no samples,
    or ran by blocks: its samples then cover all blocks, its rates only the shared ones."""
    # Every tenant's record has the samples of all devices: count each used device once.
    rows = job.members.columns("run_id", "vcd").iter_rows()
    used = {(run_id, device) for run_id, vcd in rows for device in vcd.split(",")}
    power: dict[tuple[int, str], float] = {}
    for record in read_drawn(job.members):
        if record.spans.alone.any():
            return None
        power |= {(record.run_id, meter.of): meter.mean for meter in record.meters if meter.quantity == POWER}
    if used - power.keys():
        return None
    of_launches = grouped(used, lambda key: key[0])
    return fmean(sum(power[key] for key in of_launch) for of_launch in of_launches.values())


def speed_up_view(by_precision: Tables) -> View:
    """Return the rates of every other precision over rates in fp32, of the same system under the same conditions.

    Batch sizes may differ, the work of an item may not. Raises CotenantError if no family was measured in both.
    """
    titles = works(line for lines in by_precision.values() for line in lines)
    ups = [
        (precision, line.name, ratios) for precision, line, ratios in _over_plain(by_precision) if any(ratios.values())
    ]
    if not ups:
        raise CotenantError(
            f"No family did the same work in {PLAIN} and in another precision on one system.",
            f"There is {', '.join(by_precision)}.",
        )
    names = {work: printable(title) for work, title in titles.items() if any(ratios.get(work) for *_, ratios in ups)}
    over = f"its rate in that precision over its rate in {PLAIN}; null where both were not measured of the same work"
    fields = {**SYSTEM, "precision": "the precision", **dict.fromkeys(names.values(), over)}
    rows = [
        {INDEX: printable(name), "precision": precision} | {names[work]: ratios.get(work) for work in names}
        for precision, name, ratios in ups
    ]
    columns = [Column(INDEX, left=True), Column("precision", left=True)]
    columns += [Column(name, show=numbers.ratio) for name in names.values()]
    return View("speed-up", fields, rows, columns)


def other_works(by_precision: Tables) -> list[str]:
    """Return a sentence for each family that has no speed-up because its work in fp32 was different."""
    return [
        f"{line.name}: {work.family} did another work in {precision} than in {PLAIN} (its arguments or its source "
        "differ): no speed-up."
        for precision, line, ratios in _over_plain(by_precision)
        for work, ratio in ratios.items()
        if ratio is None
    ]


def _over_plain(by_precision: Tables) -> Iterator[tuple[str, Line, Mapping[ColumnWork, float | None]]]:
    """Yield each precision other than fp32, each of its lines, and the line's rates over rates in fp32.

    A rate is over the same column's, else the family's; None if the works are known to differ in more than precision.
    An unknown work counts as equal.
    """
    in_plain = {line.key: line.entries for line in by_precision.get(PLAIN, [])}
    for precision, lines in by_precision.items():
        for line in lines if precision != PLAIN else ():
            entries = in_plain.get(line.key, {})
            of_family = {work.family: entry for work, entry in entries.items()}
            ratios = {}
            for work, entry in line.entries.items():
                if (plain := entries.get(work) or of_family.get(work.family)) is not None:
                    is_one_work = not entry.work or not plain.work or entry.work == plain.work
                    ratios[work] = entry.rate / plain.rate if is_one_work else None
            yield precision, line, ratios
