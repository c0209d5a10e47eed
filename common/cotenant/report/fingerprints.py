"""Fingerprints: each job's kept share under pressure on each resource, and the share that it leaves a probe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from cotenant.report import numbers
from cotenant.report.grid import Cell, Column, Grid, RowGroup, row, word
from cotenant.report.sense import Sensitivity
from cotenant.results.launches import grouped

KEEPS, LEAVES, LIKE = "keeps", "leaves", "like"
LEGEND = (
    "keeps: of its rate beside the neighbour at its highest level. leaves: what a probe, which is that neighbour, "
    "keeps of its own beside the job. like: the level of a neighbour that leaves a probe as much, and what "
    "that one gets. Of single launches the intervals are of rounds."
)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A job's curves by resource, under one isolation of one suite and host."""

    place: tuple[str, str, str]
    job: str
    of: dict[str, Sensitivity]


def fingerprints(curves: Sequence[Sensitivity]) -> list[Fingerprint]:
    """Return the fingerprints of jobs, where a probe was launched as well."""
    known = [each for each in curves if each.taken is not None]
    return [
        Fingerprint(place, job, {each.conditions.resource: each for each in of})
        for (place, job), of in grouped(known, lambda each: (each.conditions.place, each.conditions.job)).items()
    ]


Line = tuple[Fingerprint, str]


def fingerprints_grid(curves: Sequence[Sensitivity]) -> Grid:
    """Return three rows per job, a column per resource; for people, since programs have it beside each curve."""
    every = fingerprints(curves)
    resources = list(dict.fromkeys(resource for each in every for resource in each.of))
    columns: list[Column[Line]] = [
        Column("suite", lambda line: word(line[0].place[0]), left=True, seen="files"),
        Column("host", lambda line: word(line[0].place[1]), left=True, seen="files"),
        Column("job", lambda line: word(line[0].job if line[1] == KEEPS else ""), left=True),
        Column("slices", lambda line: word(line[0].place[2] if line[1] == KEEPS else ""), left=True),
        Column("", lambda line: word(line[1]), left=True),
        *(Column(resource, partial(_cell, resource), left=True) for resource in resources),
    ]
    groups = [
        RowGroup([row(columns, (each, what)) for each in of for what in (KEEPS, LEAVES, LIKE)], "fingerprints", host)
        for (_, host), of in grouped(every, lambda each: each.place[:2]).items()
    ]
    return Grid(columns, groups, notes=[((LEGEND, "dim"),)])


def _cell(resource: str, line: Line) -> Cell:
    fingerprint, what = line
    of = fingerprint.of.get(resource)
    if of is None or of.taken is None:
        return Cell()
    taken = of.taken
    if what == KEEPS:
        highest = of.highest
        return Cell() if highest is None else _share(highest.kept, highest.interval)
    if what == LEAVES:
        return _share(taken.kept, taken.interval)
    if taken.level is None or taken.amount is None:
        return Cell("none seen")
    more = "more than " if taken.beyond else ""
    amount = f"({numbers.rate(taken.amount)} {of.conditions.unit}/s)" if taken.amount else ""
    return Cell(f"{more}{taken.level:.0f} %", note=amount)


def _share(value: float, interval: tuple[float, float] | None) -> Cell:
    heat = round(100 * min(1.0, max(0.0, 2 * (1 - value))))
    note = "" if interval is None else f"({numbers.ratio_interval(*interval)})"
    return Cell(numbers.ratio(value), heat=heat, note=note)
