"""The jobs of a suite as a grid: their models, the units of their rates, their data, and how long they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cotenant.report.grid import Column, Grid, number, table, text_column
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
    text_column("job", lambda entry: entry.job, "job", least=11),
    Column("cells", lambda entry: number(entry.cells, str, "cells")),
    text_column("item", lambda entry: entry.item, "item", least=8),
    Column("parameters", lambda entry: number(entry.parameters, "{:,.0f}".format, "parameters"), optional=True),
    text_column("data", lambda entry: entry.data, "data", least=8),
    Column("seconds", lambda entry: number(entry.seconds, "{:,.0f}".format, "seconds"), optional=True),
    text_column("what it trains", lambda entry: entry.trains, "trains", words=True, least=12),
)
FIELDS = ("job", "cells", "item", "parameters", "data", "seconds", "trains")
DATA = "data: read below the data directory."
OF_LAST = f"{DATA} seconds, and the parameters that are trained: of the last launches in {{}}."
UNKNOWN = f"{DATA} Seconds and trained parameters are known after a run: there is none in {{}}."


def catalogue_grid(suite: str, entries: Sequence[CatalogueEntry], place: str) -> Grid:
    """Return a row per job of a suite; `place` is the directory searched for its last launches."""
    total = many(len(entries), "job")
    known = [entry.seconds for entry in entries if entry.seconds is not None]
    if known and len(known) == len(entries):
        total += f", {sum(known) / 60:.0f} min"
    legend = (OF_LAST if known else UNKNOWN).format(place)
    document = {"schema": "cotenant-list-1", "suite": suite, "jobs": entries}
    grid = table(COLUMNS, entries, suite, total)
    return replace(grid, notes=[((legend, "dim"),)], fields=FIELDS, document=document)
