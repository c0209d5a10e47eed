"""`cotenant export DIR`: one row per record, or per observation, for other programs and for reports of many records."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import polars as pl

from cotenant.commands.flags import Parser, add_records
from cotenant.commands.output import warn
from cotenant.errors import EXIT_PASSED, CotenantError
from cotenant.results.columns import JOB, OBSERVATION_COLUMNS, schema
from cotenant.results.decoded import Skipped
from cotenant.results.exports import OTHER_FILE, WRITERS, write
from cotenant.results.read import observation_frames, read_tables
from cotenant.results.store import prepare_directory
from cotenant.results.table import Table
from cotenant.suite.jobfile import matches


def main(argv: Sequence[str]) -> int:
    """Write the rows of records to a file. Returns 0, or raises CotenantError for wrong input."""
    given = _parse(argv)
    form = given.to or given.out.suffix.removeprefix(".")
    if form not in WRITERS:
        raise CotenantError(f"--out {given.out} says no form.", f"--to takes {', '.join(WRITERS)}.")
    if given.out.is_dir():
        raise CotenantError(f"{given.out} is a directory.", f"--out names a file, such as {given.out / 'rows'}.{form}.")
    for place in given.places:
        if not place.exists():
            raise CotenantError(f"There is no {place}.", "Name a directory with records, a record, or an export.")
    prepare_directory(given.out.parent, OTHER_FILE)
    export = _Export(given)
    parts = observation_frames(given.places) if given.observations else read_tables(given.places)
    write(export.chosen(parts), schema(OBSERVATION_COLUMNS) if given.observations else schema(), given.out, form)
    files = "files or parts of them" if export.skipped > 1 else "file or part of one"
    skipped = f"; {export.skipped:,} {files} skipped" if export.skipped else ""
    warn(f"{export.rows:,} rows in {given.out}{skipped}.")
    return EXIT_PASSED


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="cotenant export",
        allow_abbrev=False,
        description="One row per record, in bounded memory. `cotenant report` reads such a file like a directory.",
        epilog="docs/records.md says what the columns are.",
    )
    add = parser.add_argument
    add_records(parser)
    add("--to", choices=tuple(WRITERS), help="the form (default: what FILE ends in)")
    add("--out", metavar="FILE", type=Path, required=True, help="the file; what had that name is replaced")
    add("--observations", action="store_true", help="one row per observation instead, kept or not")
    return parser.parse_words(argv)


class _Export:
    """Chooses rows as they come, counts them, and says what is skipped."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._given = given
        self.rows = 0
        self.skipped = 0

    def chosen(self, parts: Iterable[pl.DataFrame | Table | Skipped]) -> Iterator[pl.DataFrame]:
        """Yield the chosen rows, no empty frame. Raises CotenantError where there are none at the end."""
        seen = 0
        for part in parts:
            if isinstance(part, Skipped):
                self.skipped += 1
                warn(str(part))
                continue
            frame = part.frame if isinstance(part, Table) else part
            seen += frame.height
            kept = self._choose(frame)
            if kept.height:
                self.rows += kept.height
                yield kept
        if not self.rows:
            places = ", ".join(map(str, self._given.places))
            if seen:
                raise CotenantError(f"No record in {places} is of that suite and job.", "`cotenant report` lists them.")
            what = "observation" if self._given.observations else "record"
            raise CotenantError(f"There is no {what} in {places}.", "Name a directory that a suite wrote to.")

    def _choose(self, frame: pl.DataFrame) -> pl.DataFrame:
        suite, patterns = self._given.name, self._given.job
        if suite is not None:
            frame = frame.filter(pl.col("suite").is_in([suite, ""]))
        if patterns:
            seen = frame.select(JOB).to_series().unique()
            names = [name for name in seen if any(matches(name, pattern) for pattern in patterns)]
            frame = frame.filter(JOB.is_in(names))
        return frame
