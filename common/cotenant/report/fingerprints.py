"""Fingerprints: each job's kept share under pressure on each resource, and the share that it leaves the neighbour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from cotenant.report import numbers
from cotenant.report.grid import Cell, Column, Grid, RowGroup, row, word
from cotenant.report.kept import around
from cotenant.report.sense import Sensitivity
from cotenant.results.launches import grouped
from cotenant.stats.kept import Kept

KEEPS, LEAVES = "keeps", "leaves"
LEGEND = (
    "keeps: of its rate beside the neighbour at level 100. leaves: what that neighbour keeps of its own beside the job."
)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A job's curves by resource, under one isolation of one suite and host."""

    place: tuple[str, str, str]
    job: str
    of: dict[str, Sensitivity]


def fingerprints(curves: Sequence[Sensitivity]) -> list[Fingerprint]:
    """Return the fingerprints of jobs on the resources whose neighbour was at its full level."""
    known = [each for each in curves if each.full is not None and each.leaves is not None]
    return [
        Fingerprint(place, job, {each.conditions.resource: each for each in of})
        for (place, job), of in grouped(known, lambda each: (each.conditions.place, each.conditions.job)).items()
    ]


Line = tuple[Fingerprint, str]


def fingerprints_grid(curves: Sequence[Sensitivity]) -> Grid:
    """Return two rows per job, a column per resource; for people, since programs have it beside each curve."""
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
        RowGroup([row(columns, (each, which)) for each in of for which in (KEEPS, LEAVES)], "fingerprints", host)
        for (_, host), of in grouped(every, lambda each: each.place[:2]).items()
    ]
    return Grid(columns, groups, notes=[((LEGEND, "dim"),)])


def _cell(resource: str, line: Line) -> Cell:
    fingerprint, which = line
    of = fingerprint.of.get(resource)
    if of is None or of.full is None or of.leaves is None:
        return Cell()
    return _share(of.leaves if which == LEAVES else of.full.kept)


def _share(kept: Kept) -> Cell:
    heat = round(100 * min(1.0, max(0.0, 2 * (1 - kept.value))))
    note = "" if kept.interval is None else f"({around(kept)})"
    return Cell(numbers.ratio(kept.value), heat=heat, note=note)
