"""The jobs of a suite as a grid: their models, the units of their rates, their data, and how long they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from cotenant.report.grid import Column, Grid, RowGroup, Words, number, row, word
from cotenant.text import many


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A job. `data` is below the data directory; `parameters`, and `seconds` of all cells, come from its last launches.

    Unknown fields are None or empty.
    """

    job: str
    group: str
    cells: int
    item: str
    parameters: int | None
    data: str
    seconds: float | None
    trains: str
    cmd: str


COLUMNS: Sequence[Column[CatalogueEntry]] = (
    Column("job", lambda entry: word(entry.job, "job"), left=True),
    Column("cells", lambda entry: number(entry.cells, str, "cells")),
    Column("item", lambda entry: word(entry.item, "item"), left=True),
    Column("parameters", lambda entry: number(entry.parameters, "{:,.0f}".format, "parameters"), optional=True),
    Column("data", lambda entry: word(entry.data, "data"), left=True),
    Column("seconds", lambda entry: number(entry.seconds, "{:,.0f}".format, "seconds"), optional=True),
    Column("what it trains", lambda entry: word(entry.trains, "trains"), left=True, words=True),
)
FIELDS = ("job", "cells", "item", "parameters", "data", "seconds", "trains")
DATA = "data: read below the data directory."
OF_LAST = f"{DATA} seconds, and the parameters that are trained: of the last launches in {{}}."
UNKNOWN = f"{DATA} Seconds and trained parameters are known after a run: there is none in {{}}."


def catalogue_grid(suite: str, entries: Sequence[CatalogueEntry], place: str) -> Grid:
    """Return a row per job of a suite; `place` is the directory searched for its last launches."""
    total = many(len(entries), "job")
    if entries and all(entry.seconds is not None for entry in entries):
        total += f", {sum(entry.seconds or 0 for entry in entries) / 60:.0f} min"
    legend = OF_LAST if any(entry.seconds is not None for entry in entries) else UNKNOWN
    notes: list[Words] = [((legend.format(place), "dim"),)]
    document = {"schema": "cotenant-list-1", "suite": suite, "jobs": [asdict(entry) for entry in entries]}
    groups = [RowGroup([row(COLUMNS, entry) for entry in entries], suite, total)]
    return Grid(COLUMNS, groups, notes=notes, fields=FIELDS, document=document)
