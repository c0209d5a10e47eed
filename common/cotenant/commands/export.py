"""`cotenant export DIR`: a row per record or observation for other programs, or a file that a tracker reads."""

from __future__ import annotations

import argparse
import inspect
import json
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
from cotenant.report.trackers import TRACKERS
from cotenant.results.columns import JOB, OBSERVATION_COLUMNS, schema
from cotenant.results.exports import OTHER_FILE, WRITERS, write_rows
from cotenant.results.read import observation_frames, read_tables
from cotenant.results.skipped import Skipped
from cotenant.results.store import prepare_directory, write_named
from cotenant.results.table import Table

FORMS = (*WRITERS, *TRACKERS)


def main(argv: Sequence[str]) -> int:
    """Write records to a file. Returns 0, or raises CotenantError for wrong input."""
    given = parser().parse_words(argv)
    form = given.format or given.out.suffix.removeprefix(".")
    if form not in FORMS:
        raise CotenantError(f"--out {given.out} does not say its form.", f"Add --format: {', '.join(FORMS)}.")
    if given.observations and (form == "openmetrics" or form in TRACKERS):
        raise CotenantError(f"--format {form} is a file of whole launches.", "Leave out --observations.")
    if given.out.is_dir():
        raise CotenantError(f"{given.out} is a directory.", f"--out names a file, such as {given.out / 'rows'}.{form}.")
    if not given.out.exists():  # an existing one may be a pipe or /dev/stdout, whose directory is not writable
        prepare_directory(given.out.parent, OTHER_FILE)
    return _write_tracked(given, form) if form in TRACKERS else _write_rows(given, form)


def _write_tracked(given: argparse.Namespace, form: str) -> int:
    from cotenant.api.loading import load  # rows of records need nothing that computes

    result = load(*spooled(given.places), suite=given.suite, name=given.job, tell=warn)
    warn(*result.summary.notes)
    files = TRACKERS[form](result.summary, given.out)
    for path, value in files.items():
        content = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
        write_named(path, f"{content}\n".encode(), OTHER_FILE)
    warn(f"{', '.join(map(str, files))} written.")
    return EXIT_PASSED


def _write_rows(given: argparse.Namespace, form: str) -> int:
    counts: Counter[str] = Counter()
    places = spooled(given.places)
    parts = observation_frames(places) if given.observations else read_tables(places)
    types = schema(OBSERVATION_COLUMNS) if given.observations else schema()
    write_rows(_chosen(parts, given, counts), types, given.out, form)
    files = "files or parts of them" if counts["skipped"] > 1 else "file or part of one"
    skipped = f"; {counts['skipped']:,} {files} skipped" if counts["skipped"] else ""
    warn(f"{counts['rows']:,} rows in {given.out}{skipped}.", *unvouched(counts["unvouched"], counts["read"]))
    return EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `export`."""
    parser = Parser(
        "export",
        f"One row per record, in bounded memory. `{PROGRAM} report` reads such a file like a directory.\n"
        "Or the users' rates and kept shares, for a program that tracks benchmarks.",
        "\n".join(f"{form}: {said}" for form, said in described_forms().items()),
    )
    add = parser.add_argument
    add_records(parser)
    add("--format", choices=FORMS, help="the form, as below (default: what FILE ends in)")
    add("--out", metavar="FILE", type=Path, required=True, help="the file; an existing one is replaced")
    add("--observations", action="store_true", help="one row per observation instead, kept or not")
    return parser


def described_forms() -> dict[str, str]:
    """Return each form with the first line of its writer's docstring."""
    return {form: (inspect.getdoc(write) or "").partition("\n")[0] for form, write in (WRITERS | TRACKERS).items()}


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
