"""Loads the records of some places as a result: all, or the records of a suite or of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from cotenant.api.records import Tell, chosen_jobs, of_suite, read_places
from cotenant.api.result import Result
from cotenant.checkout import output_directory
from cotenant.errors import CotenantError
from cotenant.frames import pl
from cotenant.results.columns import JOB
from cotenant.results.table import AT, Rows

OF_EXPORTS = "observations, timelines, samples of meters and the sentences of findings are in the records only."


def load(
    *places: str | Path,
    suite: str | None = None,
    name: str | Iterable[str] = (),
    tell: Tell | None = None,
) -> Result:
    """Read records, as `cotenant report` does.

    `places` are directories, which are searched recursively, records, or exports; the default is the directory to
    which runs write here. `suite` is a job file's stem, `name` names of jobs, globs and comma lists. `tell` is called
    with a sentence on each file that is no record; `Result.notes` has these, too.

    Raises CotenantError if there is no such record.

        >>> result = cotenant.load("output", name="vae")
        >>> print(result)
        vae: each user gets 7682 and 7605 image/s; each user keeps 90 % (90 to 91 %) of what it has alone. No
        difference between users of a job was detected. The launches of a job lie within 240 s: another hour may have
        other rates.
    """
    paths = [Path(place) for place in places] or [output_directory()]
    records, skipped = read_places(paths, tell or (lambda sentence: None))
    if records.exports:
        skipped.append(f"{', '.join(records.exports)}: {OF_EXPORTS}")
        if tell is not None:
            tell(skipped[-1])
    frame = of_suite(records.frame.with_row_index(AT), suite)
    if patterns := names_given(name):
        frame = _of_jobs(frame, patterns)
    whole = frame.height == len(records.table)
    rows = Rows.all(records.table) if whole else Rows(records.table, frame[AT].to_list())
    return Result(rows, tuple(paths), tuple(skipped))


def names_given(names: str | Iterable[str]) -> list[str]:
    """Return the names of a comma list, or of several of them."""
    lists = [names] if isinstance(names, str) else names
    return [name for words in lists for name in words.split(",") if name]


def _of_jobs(frame: pl.DataFrame, patterns: Sequence[str]) -> pl.DataFrame:
    names = frame.select(JOB).to_series().unique(maintain_order=True).to_list()
    if suites := set(patterns).intersection(frame["suite"]).difference(names):
        raise CotenantError(f"{min(suites)} is a suite there, not a job.", f"--suite {min(suites)} chooses it.")
    return frame.filter(JOB.is_in(chosen_jobs(names, patterns)))
