"""`cotenant export DIR`: one row per record, or per observation, for other programs and for reports of many records."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cotenant.api.records import is_meant, no_record, refused, unvouched
from cotenant.checkout import PROGRAM
from cotenant.commands.flags import Parser, add_records
from cotenant.commands.output import warn
from cotenant.commands.records import spooled
from cotenant.errors import EXIT_PASSED, CotenantError
from cotenant.frames import pl
from cotenant.results.columns import JOB, OBSERVATION_COLUMNS, schema
from cotenant.results.exports import OTHER_FILE, WRITERS, write
from cotenant.results.read import observation_frames, read_tables
from cotenant.results.skipped import Skipped
from cotenant.results.store import prepare_directory
from cotenant.results.table import Table


def main(argv: Sequence[str]) -> int:
    """Write the rows of records to a file. Returns 0, or raises CotenantError for wrong input."""
    given = parser().parse_words(argv)
    form = given.to or given.out.suffix.removeprefix(".")
    if form not in WRITERS:
        forms = ", ".join(f".{name}" for name in WRITERS)
        raise CotenantError(f"--out {given.out} ends in none of {forms}.", "Name it so, or choose a form with --to.")
    if form == "openmetrics" and given.observations:
        raise CotenantError("OpenMetrics has the newest launch of each job.", "Leave out --observations.")
    if given.out.is_dir():
        raise CotenantError(f"{given.out} is a directory.", f"--out names a file, such as {given.out / 'rows'}.{form}.")
    if not given.out.exists():  # an existing one may be a pipe or /dev/stdout, whose directory is not writable
        prepare_directory(given.out.parent, OTHER_FILE)
    counts: Counter[str] = Counter()
    places = spooled(given.places)
    parts = observation_frames(places) if given.observations else read_tables(places)
    types = schema(OBSERVATION_COLUMNS) if given.observations else schema()
    write(_chosen(parts, given, counts), types, given.out, form)
    files = "files or parts of them" if counts["skipped"] > 1 else "file or part of one"
    skipped = f"; {counts['skipped']:,} {files} skipped" if counts["skipped"] else ""
    warn(f"{counts['rows']:,} rows in {given.out}{skipped}.", *unvouched(counts["unvouched"], counts["read"]))
    return EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `export`."""
    parser = Parser(
        "export",
        f"One row per record, in bounded memory. `{PROGRAM} report` reads such a file like a directory.",
        "`help records` explains the columns.",
    )
    add = parser.add_argument
    add_records(parser)
    add("--to", choices=tuple(WRITERS), help="the form (default: what FILE ends in)")
    add("--out", metavar="FILE", type=Path, required=True, help="the file; an existing one is replaced")
    add("--observations", action="store_true", help="one row per observation instead, kept or not")
    return parser


def _chosen(
    parts: Iterable[pl.DataFrame | Table | Skipped], given: argparse.Namespace, counts: Counter[str]
) -> Iterator[pl.DataFrame]:
    """Yield the chosen rows, without empty frames; count them and the files skipped, and warn of these.

    Raises CotenantError if there were no rows; warns of jobs without any.
    """
    missing = set(given.job)
    for part in parts:
        if isinstance(part, Skipped):
            counts["skipped"] += 1
            warn(str(part))
            continue
        if isinstance(part, Table):
            warn(*refused(part))
            counts["unvouched"] += part.unvouched
        frame = part.frame if isinstance(part, Table) else part
        counts["read"] += frame.height
        if given.suite is not None:
            frame = frame.filter(pl.col("suite").is_in([given.suite, ""]))
        if given.job:
            names = frame.select(JOB).to_series().unique()
            meant = [(name, pattern) for name in names for pattern in given.job if is_meant(name, pattern)]
            missing.difference_update(pattern for _, pattern in meant)
            frame = frame.filter(JOB.is_in([name for name, _ in meant]))
        counts["rows"] += frame.height
        if frame.height:
            yield frame
    if not counts["rows"] and counts["read"]:
        places = ", ".join(map(str, given.places))
        raise CotenantError(f"No record in {places} is of that suite and job.", f"`{PROGRAM} report` lists them.")
    if not counts["rows"]:
        raise no_record(given.places, "observation" if given.observations else "record")
    warn(*(f"There is no job '{pattern}' there." for pattern in sorted(missing)))
