"""Reads records and exports into tables, and reads records again for values that no table has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.frames import pl
from cotenant.results.as_read import ReadRecord
from cotenant.results.columns import OBSERVATION_COLUMNS, observation_values, schema
from cotenant.results.drawn import Drawn, own_meters, spans_of
from cotenant.results.export_form import export_form
from cotenant.results.exports import read_export
from cotenant.results.record import Record
from cotenant.results.record_files import own_records, records_in
from cotenant.results.skipped import EDITED, Skipped
from cotenant.results.table import IN_FILE, Rows, Table, joined_tables, record_tables

BATCH_FILES = 100
"""The most records whose observations are in one frame."""


@dataclass(frozen=True, slots=True)
class Records:
    """The records in the order of their paths, the skipped files, and the paths of exports."""

    table: Table
    skipped: tuple[Skipped, ...]
    exports: tuple[str, ...]

    @property
    def frame(self) -> pl.DataFrame:
        return self.table.frame


def read_records(places: list[Path]) -> Records:
    """Read every record in the given files and directories, and below these.

    An exported file is read only if it is given itself; its rows come last. Raises CotenantError if a place does not
    exist; files with other faults are skipped and named.
    """
    parts: list[Table] = []
    skipped: list[Skipped] = []
    for part in read_tables(places):
        skipped.append(part) if isinstance(part, Skipped) else parts.append(part)
    exports, _ = exports_among(places)
    return Records(joined_tables(parts), tuple(skipped), tuple(map(str, exports)))


def read_tables(places: list[Path]) -> Iterator[Table | Skipped]:
    """Yield the rows of all records in batches, exported ones last. Raises CotenantError for a missing place."""
    exports, others = exports_among(places)
    yield from record_tables(records_in(others))
    for path in exports:
        yield from read_export(path)


def observation_frames(places: list[Path]) -> Iterator[pl.DataFrame | Skipped]:
    """Yield frames with a row for each observation of all records, without edited records.

    Raises CotenantError for a missing place.
    """
    types = schema(OBSERVATION_COLUMNS)
    records = records_in(places)
    while batch := list(itertools.islice(records, BATCH_FILES)):
        yield from (part for part in batch if isinstance(part, Skipped))
        ours = [part for part in batch if isinstance(part, ReadRecord)]
        yield from (Skipped(read.path, EDITED) for read in ours if read.edited)
        rows = [row for read in ours if not read.edited for row in observation_values(read)]
        if rows:
            yield pl.DataFrame(rows, types, orient="row")


def exports_among(places: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return the exported files among places, each once, and the other places."""
    exports = {place.resolve(): place for place in places if export_form(place)}
    return list(exports.values()), [place for place in places if place.resolve() not in exports]


def again(rows: Rows) -> Iterator[tuple[dict[str, Any], Record]]:
    """Read the files of these rows again, for values that no table has: yield each row and its record.

    Rows of exports and of the original suite are left out, and rows whose files have no record of ours in their place.
    """
    path, records = "", list[Record | None]()
    for row in rows.where(pl.col(IN_FILE).is_not_null() & pl.col("ours")).frame.iter_rows(named=True):
        if row["path"] != path:
            path = row["path"]
            records = own_records(Path(path))
        if row[IN_FILE] < len(records) and (record := records[row[IN_FILE]]) is not None:
            yield row, record


def read_drawn(rows: Rows) -> list[Drawn]:
    """Read the drawn parts of these records again."""
    return [
        Drawn(str(record.tenant), record.run_id, spans_of(record), record.rendezvous, own_meters(record))
        for _, record in again(rows)
    ]
