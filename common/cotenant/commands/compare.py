"""`cotenant compare A B`: is B slower? One verdict per job, for people and for pipelines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cotenant.commands.flags import Parser, at_dashes
from cotenant.commands.output import tell, tell_grid, warn
from cotenant.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PASSED, EXIT_SLOWER, CotenantError
from cotenant.report.comparison import (
    Conditions,
    SuiteComparison,
    as_junit,
    compare_launches,
    comparison_grid,
    confirmed,
    differences_allowed,
    flagged,
    mixture,
)
from cotenant.results.decoded import mapping_of, skipped_sentences
from cotenant.results.drawn import differences, joint_setting
from cotenant.results.launches import LaunchRecords, launches_of, rates_of
from cotenant.results.read import Records, again, planned_jobs, read_records
from cotenant.results.table import Rows
from cotenant.stats.comparison import LEAST_MARGIN, Verdict, aa_noise, margin_of


def main(argv: Sequence[str]) -> int:
    """Compare two sets of records. Returns 0, or 3 with --fail-on where a job has that verdict or is lost in B; 2 for
    wrong input.

    With --confirm also what runs return: 1 where a new launch has no rate, 130 where one was interrupted.
    """
    ours, others = at_dashes(argv)
    given = _parse(ours)
    _check(given.allow, given.margin, given.noise)
    if others and not given.confirm:
        raise CotenantError("What stands after -- is for the runs of --confirm.", "Add --confirm, or leave it out.")
    of_a, of_b = _records(given.a), _records(given.b)
    _say_versions(of_a, of_b)
    a, b = _launches(of_a), _launches(of_b)
    conditions = _conditions(given)
    lines, status = compare_launches(a, b, conditions), EXIT_PASSED
    if given.confirm and (cells := flagged(lines)):
        from cotenant.commands.confirm import launch_again  # a comparison alone needs nothing of what launches

        repeated, left_out, cut_by = launch_again(given.b, b, cells, others)
        if cut_by is not None:
            print(f"Interrupted by {cut_by}: nothing is confirmed.", file=sys.stderr)
            return EXIT_INTERRUPTED
        old, new = ({cell: side.get(cell, []) for cell in cells} for side in (a, repeated))
        lines = confirmed(lines, compare_launches(old, new, replace(conditions, one_place=False)))
        status = EXIT_FAILED if left_out else EXIT_PASSED
    _say(lines, given.format, conditions.margin)
    return EXIT_SLOWER if given.fail_on and _fails(lines) else status


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="cotenant compare",
        allow_abbrev=False,
        description="Compare two sets of records: B over A per job, from at least five launches (uids) on each side.",
        epilog="A verdict comes from the 95 % interval against the margin: FASTER, SLOWER, SAME, UNCLEAR, or INVALID.",
    )
    add = parser.add_argument
    add("a", metavar="A", type=Path, help="a directory of records, a record, or an export: the reference")
    add("b", metavar="B", type=Path, help="what is compared to it")
    add("--format", choices=("text", "md", "json", "junit"), default="text", help="how to say it (default text)")
    add("--fail-on", choices=("slower",), help="exit 3 if a job is SLOWER, or ran in A and fails in B")
    add(
        "--allow",
        action="append",
        default=[],
        metavar="WHAT",
        help=f"compare all the same: {', '.join(differences_allowed())}",
    )
    add("--margin", type=float, metavar="SHARE", help=f"what counts as no difference (default {LEAST_MARGIN})")
    add(
        "--noise",
        type=Path,
        metavar="DIR",
        help="records of equal launches: a job's margin is twice the noise of its own there, or 2 %%",
    )
    add(
        "--confirm",
        action="store_true",
        help="launch what is FASTER or SLOWER again as B was, with run's flags after --",
    )
    return parser.parse_words(words)


def _check(allowed: Sequence[str], margin: float | None, noise: Path | None) -> None:
    for name in allowed:
        if name not in differences_allowed():
            raise CotenantError(
                f"There is no difference '{name}' to allow.", f"--allow takes {', '.join(differences_allowed())}."
            )
    if margin is not None and not 0 < margin < 1:
        raise CotenantError(f"A margin of {margin:g} makes no sense.", "--margin 0.02 is two percent.")
    if margin is not None and noise is not None:
        raise CotenantError("--margin and --noise both say the margin.", "Give one of them.")


def _records(place: Path) -> Records:
    """Read the records of a place; what is none is said on standard error. Raises CotenantError without any."""
    records = read_records([place])
    for line in skipped_sentences(records.skipped):
        warn(line)
    if not len(records.table):
        raise CotenantError(f"There is no record in {place}.", "Name a directory that a suite wrote its records to.")
    return records


def _launches(records: Records) -> dict[str, list[LaunchRecords]]:
    launches, left_out = launches_of(records.frame)
    for line in left_out:
        warn(line)
    return launches


def _say_versions(a: Records, b: Records) -> None:
    """Say on standard error which versions differ between the sides, as far as both have records that know."""
    found = differences(*(joint_setting(_machines(side)) for side in (a, b)))
    if found:
        warn(f"Other versions from A to B: {'; '.join(found)}.")


def _machines(records: Records) -> Iterator[Mapping[str, Any]]:
    return (mapping_of(record.at("machine")) for _, record in again(Rows.all(records.table)))


def _conditions(given: argparse.Namespace) -> Conditions:
    """Return the conditions; a job that the records of --noise lack has the largest margin of any that they have."""
    margins = {} if given.noise is None else _margins(given.noise, given.allow)
    margin = given.margin if given.margin is not None else max(margins.values(), default=LEAST_MARGIN)
    return Conditions(margin, margins, given.allow, given.a.resolve() == given.b.resolve(), planned_jobs(given.b))


def _margins(place: Path, allowed: Collection[str]) -> dict[str, float]:
    """Return the margin of each job that has two launches and more among the records of equal launches."""
    margins = {}
    for job, launches in _launches(_records(place)).items():
        if (found := mixture(launches, allowed)) is not None:
            raise CotenantError(
                f"{job} in {place} has launches of {found}.", "Noise is the difference between equal launches."
            )
        if len(launches) > 1:
            margins[job] = margin_of(aa_noise(rates_of(launches)))
    if not margins:
        raise CotenantError(f"{place} has no job with two launches.", "Noise is the difference between equal launches.")
    return margins


def _say(lines: SuiteComparison, form: str, margin: float) -> None:
    if form == "junit":
        tell(as_junit(lines).removesuffix("\n"))
    else:
        tell_grid(comparison_grid(lines, margin), form)


def _fails(lines: SuiteComparison) -> bool:
    """Is a job of A slower in B, or lost? Says on standard error which are lost, and which B has none of."""
    absent = [one.job for one in lines.lines if one.a is not None and one.b is None and one.job not in lines.lost]
    if named := ", ".join(lines.lost):
        warn(f"A has a rate of these jobs, and B, which ran them or was asked to, has none: {named}.")
    if named := ", ".join(absent):
        warn(f"B has no record of these jobs of A, and nothing says that it was to run them: {named}.")
    return bool(lines.lost) or any(line.verdict is Verdict.SLOWER for line in lines.lines)
