"""Reads the records of some places, and chooses the records of a suite, of jobs and of a class."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from cotenant.errors import CotenantError, did_you_mean
from cotenant.frames import pl
from cotenant.results.journal import FILE
from cotenant.results.read import Records, read_records
from cotenant.results.skipped import skipped_sentences
from cotenant.results.table import AT, Table
from cotenant.suite.jobfile import matches
from cotenant.text import many, printable

Tell = Callable[[str], object]
"""Takes sentences for the user, one at a time."""


def read_places(places: Sequence[Path], tell: Tell) -> tuple[Records, list[str]]:
    """Read all records of some places, and tell of each file that is no record. Also returns these sentences.

    Raises CotenantError if there is no record.
    """
    records = read_records(list(places))
    skipped = skipped_sentences(records.skipped)
    table = records.table
    for line in (*skipped, *refused(table), *unvouched(table.unvouched, len(table))):
        tell(line)
    if not len(table):
        raise no_record(places)
    return records, skipped


def refused(table: Table) -> list[str]:
    """Return a sentence on each record that differs from the one that its launch wrote, or from its own observations;
    such a record is INVALID."""
    found = table.findings.filter(pl.col("rule").is_in(["edited", "contradicted"]))
    return [f"{table.frame['path'][at]}: {sentence}" for at, sentence in found.select(AT, "sentence").iter_rows()]


def unvouched(count: int, rows: int) -> list[str]:
    """Return a sentence on the records that no journal has, if there are any."""
    said = f"No journal vouches for {count:,} of {many(rows, 'record')}: it stands beside records as {FILE}; copy both."
    return [said] if count else []


def no_record(places: Sequence[Path], what: str = "record") -> CotenantError:
    """Return the error for places that hold no record."""
    return CotenantError(
        f"There is no {what} in {', '.join(map(str, places))}.",
        "Name a directory that a suite wrote its records to, one of its records, or an export.",
    )


def of_suite(frame: pl.DataFrame, name: str | None) -> pl.DataFrame:
    """Return the rows of a suite; records that name none belong to any. Raises CotenantError if there are no rows."""
    chosen = frame if name is None else frame.filter(pl.col("suite").is_in([name, ""]))
    if name is not None and chosen.is_empty():
        suites = sorted(frame["suite"].unique())
        hint = did_you_mean(name, suites) or f"There are records of: {', '.join(suites)}."
        raise CotenantError(f"There are no records of {name} there.", hint)
    return chosen


def is_meant(name: str, pattern: str) -> bool:
    """Return whether a pattern is this name, a glob that matches it, or the name of its job if it is a cell."""
    return matches(name, pattern) or name.startswith(f"{pattern}.")


def chosen_jobs(names: Collection[str], patterns: Sequence[str]) -> set[str]:
    """Return the jobs that any pattern matches. Raises CotenantError for a pattern that matches none."""
    chosen = set[str]()
    for pattern in patterns:
        matching = {name for name in names if is_meant(name, pattern)}
        if not matching:
            hint = did_you_mean(pattern, names) or f"There are {', '.join(map(printable, names)) or 'none'}."
            raise CotenantError(f"There is no job '{pattern}' there.", hint)
        chosen |= matching
    return chosen
