"""`cotenant compare A B`: is B slower? One verdict per job, for people and for pipelines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cotenant.commands.flags import Parser, add_format, at_dashes, place, share
from cotenant.commands.output import tell, tell_grid, warn
from cotenant.commands.records import read
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
from cotenant.results.decoded import mapping_of
from cotenant.results.drawn import differences, joint_setting
from cotenant.results.launches import LaunchRecords, launches_of, rates_of
from cotenant.results.read import Records, again
from cotenant.results.record_files import planned_jobs
from cotenant.results.table import Rows
from cotenant.stats.comparison import aa_noise, margin_of
from cotenant.stats.verdict import LEAST_MARGIN, Verdict
from cotenant.text import sender_of


def main(argv: Sequence[str]) -> int:
    """Compare two sets of records. Returns 0, or 3 with --fail-on where a job has that verdict or is lost in B; 2 for
    wrong input.

    With --confirm also what runs return: 1 where a new launch has no rate, 130 where one was interrupted.
    """
    ours, others = at_dashes(argv)
    given = parser().parse_words(ours)
    if others and not given.confirm:
        raise CotenantError("What stands after -- is for the runs of --confirm.", "Add --confirm, or leave it out.")
    sides = [read([place])[0] for place in (given.a, given.b)]
    if changes := differences(*(joint_setting(_machines(side)) for side in sides)):
        warn(f"Other versions from A to B: {'; '.join(changes)}.")
    a, b = map(_launches, sides)
    conditions = _conditions(given)
    lines, status = compare_launches(a, b, conditions), EXIT_PASSED
    if given.confirm and (cells := flagged(lines)):
        from cotenant.commands.confirm import launch_again  # a comparison alone needs no module that launches

        anew, left_out, cut_by = launch_again((given.a, a), (given.b, b), cells, others)
        if cut_by is not None:
            print(f"Stopped by {sender_of(cut_by)}: nothing is confirmed.", file=sys.stderr)
            return EXIT_INTERRUPTED
        old, new = ({cell: side.get(cell, []) for cell in cells} for side in anew)
        lines = confirmed(lines, compare_launches(old, new, conditions))
        status = EXIT_FAILED if left_out else EXIT_PASSED
    if given.format == "junit":
        tell(as_junit(lines))
    else:
        tell_grid(comparison_grid(lines), given.format)
    return EXIT_SLOWER if given.fail_on and _fails(lines) else status


def parser() -> Parser:
    """Return the parser of `compare`."""
    parser = Parser(
        "compare",
        "Compare two sets of records: B over A per job, from at least five launches (uids) on each side.",
        "A verdict comes from the 95 % interval against the margin: FASTER, SLOWER, SAME, UNCLEAR, or INVALID.",
    )
    add = parser.add_argument
    add("a", metavar="A", type=place, help="a directory of records, a record, or an export: the reference")
    add("b", metavar="B", type=place, help="what is compared to it")
    add_format(parser, ("md", "json", "junit"))
    add("--fail-on", choices=("slower",), help="exit 3 if a job is SLOWER, or ran in A and fails in B")
    what = "a difference in which sides are compared all the same; may be repeated"
    add("--allow", action="append", default=[], choices=differences_allowed(), help=what)
    margin = parser.add_mutually_exclusive_group()
    none = f"a difference that counts as none, as 2%% or 0.02 (default: the launches' noise, {LEAST_MARGIN} at least)"
    margin.add_argument("--margin", type=share, metavar="SHARE", help=none)
    noise = "records of equal launches: a job's margin is twice the noise of its own there, or 2 %%"
    margin.add_argument("--noise", type=place, metavar="DIR", help=noise)
    again = "launch what is FASTER or SLOWER again, A and B by turns: -- run's flags for A --- those for B"
    add("--confirm", action="store_true", help=again)
    return parser


def _launches(records: Records) -> dict[str, list[LaunchRecords]]:
    launches, left_out = launches_of(records.frame)
    for line in left_out:
        warn(line)
    return launches


def _machines(records: Records) -> Iterator[Mapping[str, Any]]:
    return (mapping_of(record.at("machine")) for _, record in again(Rows.all(records.table)))


def _conditions(given: argparse.Namespace) -> Conditions:
    """Return the conditions; a job that the records of --noise lack has the largest margin of any that they have."""
    margins = {} if given.noise is None else _margins(given.noise, given.allow)
    margin = given.margin if given.margin is not None else max(margins.values(), default=None)
    return Conditions(margin, margins, given.allow, planned_jobs(given.b))


def _margins(place: Path, allowed: Collection[str]) -> dict[str, float]:
    """Return the margin of each job that has two launches and more among the records of equal launches."""
    margins = {}
    for job, launches in _launches(read([place])[0]).items():
        if (mixed := mixture(launches, allowed)) is not None:
            raise CotenantError(
                f"{job} in {place} has launches of {mixed}.", "Noise is the difference between equal launches."
            )
        if len(launches) > 1:
            margins[job] = margin_of(aa_noise(rates_of(launches)))
    if not margins:
        raise CotenantError(f"{place} has no job with two launches.", "Noise is the difference between equal launches.")
    return margins


def _fails(lines: SuiteComparison) -> bool:
    """Is a job of A slower in B, or lost? Says on standard error which are lost, and which B has none of."""
    absent = [line.job for line in lines.lines if line.a is not None and line.b is None and line.job not in lines.lost]
    if named := ", ".join(lines.lost):
        warn(f"A has a rate of these jobs, and B, which ran them or was asked to, has none: {named}.")
    if named := ", ".join(absent):
        warn(f"B has no record of these jobs of A, and nothing says that it was to run them: {named}.")
    return bool(lines.lost) or any(line.verdict is Verdict.SLOWER for line in lines.lines)
