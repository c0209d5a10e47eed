"""The jobs of a suite: their models, the units of their rates, their data, and how long they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from cotenant.report.view import Column, RowGroup, View, common
from cotenant.text import many


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A job. `data` is below the data directory; `parameters` and the `seconds` of all cells are of its last launches.

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


FIELDS = {
    **common("job"),
    "cells": "the combinations of its arguments",
    "item": "the unit of its rate",
    "parameters": "the parameters that it trains, known after a run",
    "data": "the files that it reads below the data directory",
    "seconds": "how long its cells took, known after a run",
    "trains": "what it trains",
    **common("suite", "group"),
    "cmd": "its command",
}
COLUMNS = (
    Column("job", left=True, least=11),
    Column("cells"),
    Column("item", left=True, least=8),
    Column("parameters", show="{:,.0f}".format, optional=True),
    Column("data", left=True, least=8),
    Column("seconds", show="{:,.0f}".format, optional=True),
    Column("what it trains", "trains", left=True, words=True, least=12),
)
DATA = "data: read below the data directory."
OF_LAST = f"{DATA} seconds, and the parameters that are trained: of the last launches in {{}}."
UNKNOWN = f"{DATA} Seconds and trained parameters are known after a run: there is none in {{}}."


def catalogue_view(suite: str, entries: Sequence[CatalogueEntry], place: str) -> View:
    """Return a row per job of a suite; `place` is the directory searched for its last launches."""
    total = many(len(entries), "job")
    seconds = [entry.seconds for entry in entries if entry.seconds is not None]
    if seconds and len(seconds) == len(entries):
        total += f", {sum(seconds) / 60:.0f} min"
    legend = (OF_LAST if seconds else UNKNOWN).format(place)
    rows = [{"suite": suite, **asdict(entry)} for entry in entries]
    return View("list", FIELDS, rows, COLUMNS, [RowGroup(rows, suite, total)], lines=[((legend, "dim"),)])
