"""Compares two sets of records: chooses the launches of each job on both sides, and the conditions of comparison."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from cotenant.api.records import Tell, read_places
from cotenant.api.result import Result
from cotenant.errors import CotenantError
from cotenant.report.comparison import (
    Conditions,
    SuiteComparison,
    compare_launches,
    differences_allowed,
    mixture,
)
from cotenant.results.drawn import joint_setting, version_differences
from cotenant.results.launches import LaunchRecords, launches_of, rates_of
from cotenant.results.read import again
from cotenant.results.record_files import planned_jobs
from cotenant.results.table import Rows
from cotenant.stats.comparison import margin_of, pooled_noise

Launches = dict[str, list[LaunchRecords]]
"""The launches with a rate, by job."""
Source = str | Path | Result


def compare(
    a: str | Path | Result,
    b: str | Path | Result,
    *,
    margin: float | None = None,
    noise: str | Path | Result | None = None,
    allow: Collection[str] = (),
    tell: Tell | None = None,
) -> SuiteComparison:
    """Compare two sets of records, as `cotenant compare` does: is B slower than A? One verdict per job.

    Each is a result, a directory, a record, or an export. A difference of at most `margin` counts as none; by default
    the margin is twice the noise between equal launches of a job in `noise`, else the noise of all compared launches,
    at least 0.02. `allow` names differences between sides that do not prevent a comparison, as `host` and `software`.
    `tell` is called with a sentence on each launch that is left out.

    Raises CotenantError.

        >>> (vae,) = cotenant.compare("A", "B").lines
        >>> vae.verdict.name, f"{vae.comparison.ratio:.3f}"
        ('SLOWER', '0.943')
    """
    if margin is not None and not 0 < margin < 1:
        raise CotenantError(f"A margin of {margin} does not lie between 0 and 1.", "2 % is 0.02.")
    if margin is not None and noise is not None:
        raise CotenantError(
            "margin and noise both set the largest difference that counts as none.", "Give one of them."
        )
    if unknown := sorted({*allow} - {*differences_allowed()}):
        raise CotenantError(
            f"There is no difference named '{unknown[0]}'.", f"There are {', '.join(differences_allowed())}."
        )
    say = tell or (lambda sentence: None)
    rows_a, rows_b = (_rows(source, say) for source in (a, b))
    if changes := version_differences(*map(_setting, (rows_a, rows_b))):
        say(f"Other versions from A to B: {'; '.join(changes)}.")
    launches_a, launches_b = (_launches(rows, say) for rows in (rows_a, rows_b))
    margins = {} if noise is None else _margins(noise, allow, say)
    most = margin if margin is not None else max(margins.values(), default=None)
    # Only all records of a place tell which of its planned jobs are missing.
    asked = {job for place in _places(b) for job in planned_jobs(place)} if len(rows_b) == len(rows_b.table) else ()
    return compare_launches(launches_a, launches_b, Conditions(most, margins, allow, asked))


def _rows(source: Source, tell: Tell) -> Rows:
    return source.records if isinstance(source, Result) else Rows.all(read_places(_places(source), tell)[0].table)


def _places(source: Source) -> Sequence[Path]:
    return source.places if isinstance(source, Result) else [Path(source)]


def _launches(rows: Rows, tell: Tell) -> Launches:
    launches, left_out = launches_of(rows.frame)
    for line in left_out:
        tell(line)
    return launches


def _setting(rows: Rows) -> dict[str, str]:
    return joint_setting(record.machine for _, record in again(rows))


def _margins(noise: Source, allowed: Collection[str], tell: Tell) -> dict[str, float]:
    """Return the margin of each job that has two launches or more among the records of equal launches."""
    margins, place = {}, ", ".join(map(str, _places(noise)))
    for job, launches in _launches(_rows(noise, tell), tell).items():
        if (mixed := mixture(launches, allowed)) is not None:
            raise CotenantError(
                f"{job} in {place} has launches of {mixed}.", "Noise is the difference between equal launches."
            )
        if len(launches) > 1:
            margins[job] = margin_of(pooled_noise([rates_of(launches)]))
    if not margins:
        raise CotenantError(f"{place} has no job with two launches.", "Noise is the difference between equal launches.")
    return margins
