"""Which records a command reads: their places, their suite and jobs; and which jobs a score expects."""

from __future__ import annotations

import atexit
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

import polars as pl

from cotenant.checkout import CHECKOUT
from cotenant.commands.output import warn
from cotenant.errors import CotenantError, did_you_mean
from cotenant.results.decoded import skipped_sentences
from cotenant.results.read import Records, read_records
from cotenant.results.table import AT, Table
from cotenant.suite.cells import expand
from cotenant.suite.jobfile import load, matches, resolve_path
from cotenant.text import printable

MOST_INPUT_BYTES = 4 << 30


def of_class(frame: pl.DataFrame, run_class: str | None) -> pl.DataFrame:
    """Return the rows of a class, where none is named those of the only one there is. Raises CotenantError for two."""
    # Exports from before there were classes have an empty one.
    of_rows = pl.col("run_class").replace("", "base")
    classes = sorted(frame.select(of_rows).to_series().unique())
    if run_class is None and len(classes) > 1:
        raise CotenantError(
            "There are base and tuned results, which never stand in one table.",
            "--class base or --class tuned chooses; `compare A B --allow class` has both.",
        )
    if run_class is not None and run_class not in classes:
        raise CotenantError(f"There are no {run_class} results there.", f"There are {' and '.join(classes)} ones.")
    return frame if run_class is None else frame.filter(of_rows == run_class)


def spooled(places: Sequence[Path]) -> list[Path]:
    """Return the places; for `-` a file with standard input, kept until this program ends: pictures read it again.

    Raises CotenantError for more than MOST_INPUT_BYTES.
    """
    return [_spooled() if place == Path("-") else place for place in places]


def _spooled() -> Path:
    file = tempfile.NamedTemporaryFile(prefix="cotenant-standard-input-")  # goes when it is closed
    atexit.register(file.close)
    try:
        while chunk := sys.stdin.buffer.read(1 << 20):
            file.write(chunk)
            if file.tell() > MOST_INPUT_BYTES:
                raise CotenantError(
                    f"Standard input holds more than {MOST_INPUT_BYTES >> 30} GiB.",
                    "Write it to a file, and name that.",
                )
        file.flush()
    except OSError as error:
        raise CotenantError(
            f"Standard input cannot be kept: {error.strerror}.", "TMPDIR names another place."
        ) from None
    return Path(file.name)


def read(places: list[Path]) -> tuple[Records, list[str]]:
    """Read the records of some places, and warn of what is none. Also returns these warnings.

    Raises CotenantError where there is no record.
    """
    records = read_records(spooled(places))
    skipped = skipped_sentences(records.skipped)
    for line in skipped:
        warn(line)
    warn_of_edited(records.table)
    if not len(records.table):
        raise no_record(places)
    return records, skipped


def warn_of_edited(table: Table) -> None:
    """Warn of each record that differs from the one that its launch wrote; such a record is INVALID."""
    found = table.findings.filter(pl.col("rule") == "edited")
    for at, sentence in found.select(AT, "sentence").iter_rows():
        warn(f"{table.frame['path'][at]}: {sentence}")


def no_record(places: Sequence[Path], what: str = "record") -> CotenantError:
    """Return the refusal of places where there is none."""
    return CotenantError(
        f"There is no {what} in {', '.join(map(str, places))}.",
        "Name a directory that a suite wrote its records to, one of its records, or an export.",
    )


def of_suite(frame: pl.DataFrame, name: str | None) -> pl.DataFrame:
    """Return the rows of a suite; records that name none are of any. Raises CotenantError where there are none."""
    chosen = frame if name is None else frame.filter(pl.col("suite").is_in([name, ""]))
    if name is not None and chosen.is_empty():
        suites = sorted(frame["suite"].unique())
        hint = did_you_mean(name, suites) or f"There are records of: {', '.join(suites)}."
        raise CotenantError(f"There are no records of {name} there.", hint)
    return chosen


def is_meant(name: str, pattern: str) -> bool:
    """Whether a pattern is this name, a glob that fits it, or the name of the job of which this is a cell."""
    return matches(name, pattern) or name.startswith(f"{pattern}.")


def chosen_names(names: Collection[str], patterns: Sequence[str], sentence: str) -> set[str]:
    """Return the names that any pattern matches; all where there is no pattern.

    Raises CotenantError for a pattern that matches none: with `sentence`, in which `{}` is its place.
    """
    chosen = set() if patterns else set(names)
    for pattern in patterns:
        matching = {name for name in names if is_meant(name, pattern)}
        if not matching:
            hint = did_you_mean(pattern, names) or f"There are {', '.join(map(printable, names)) or 'none'}."
            raise CotenantError(sentence.format(pattern), hint)
        chosen |= matching
    return chosen


def expected_jobs(file: str, targets: Collection[str]) -> dict[str, float]:
    """Return the weights of a job file's jobs, by the names of their records: those that a score expects.

    Warns of those that have no target. A job of several cells is as many, which share its weight, unless there is a
    target for all of it, as for `scaling`. Raises CotenantError for a file that is no job file.
    """
    weights: dict[str, float] = {}
    for job in load(resolve_path(file, [Path.cwd(), CHECKOUT])).jobs:
        names = [job.stem] if job.stem in targets else [cell.label for cell in expand(job)]
        weights |= dict.fromkeys(names, job.weight / len(names))
    if without := [name for name in weights if name not in targets]:
        warn(f"no target for {', '.join(without)}.")
    return weights
