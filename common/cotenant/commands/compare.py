"""`cotenant compare A B`: judges whether B is slower, job by job, for people and for pipelines."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cotenant.api.comparing import sides_of
from cotenant.commands.flags import Parser, add_format, at_dashes, place, share
from cotenant.commands.output import tell, tell_grid, warn, write_page
from cotenant.commands.records import spooled
from cotenant.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PASSED, EXIT_SLOWER, CotenantError
from cotenant.report.comparison import (
    SuiteComparison,
    as_junit,
    compare_launches,
    comparison_grid,
    confirmed,
    differences_allowed,
    flagged,
)
from cotenant.stats.verdict import LEAST_MARGIN, Verdict
from cotenant.text import sender_of


def main(argv: Sequence[str]) -> int:
    """Compare two sets of records. Returns 0; with --fail-on 3 if a job has that verdict or is lost in B; 2 for wrong
    input.

    With --confirm also 1 if a new launch has no rate, and 130 if one was interrupted.
    """
    ours, others = at_dashes(argv)
    given = parser().parse_words(ours)
    if others and not given.confirm:
        raise CotenantError("What stands after -- is for the runs of --confirm.", "Add --confirm, or leave it out.")
    a, b, *noise = spooled([given.a, given.b, *([given.noise] if given.noise else [])])
    sides = sides_of(a, b, margin=given.margin, noise=next(iter(noise), None), allow=given.allow, tell=warn)
    lines, status = sides.compared(), EXIT_PASSED
    if given.confirm and (cells := flagged(lines)):
        from cotenant.commands.confirm import launch_again  # a comparison alone needs no module that launches

        both = (given.a, sides.a), (given.b, sides.b)
        anew, left_out, cut_by = launch_again(*both, cells, others)
        if cut_by is not None:
            print(f"Stopped by {sender_of(cut_by)}: nothing is confirmed.", file=sys.stderr)
            return EXIT_INTERRUPTED
        old, new = ({cell: side.get(cell, []) for cell in cells} for side in anew)
        lines = confirmed(lines, compare_launches(old, new, sides.conditions))
        status = EXIT_FAILED if left_out else EXIT_PASSED
    if given.html is not None:
        from cotenant.report.view_pages import comparison_page  # matplotlib takes a second to import

        write_page(given.html, comparison_page(str(given.a), str(given.b), lines))
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
    add("--html", type=place, metavar="FILE", help="write one page that works offline")
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


def _fails(lines: SuiteComparison) -> bool:
    """Return whether a job of A is slower in B, or lost; print on standard error the jobs that B lost, or never had."""
    absent = [line.job for line in lines.lines if line.a is not None and line.b is None and line.job not in lines.lost]
    if named := ", ".join(lines.lost):
        warn(f"A has a rate of these jobs, and B, which ran them or was asked to, has none: {named}.")
    if named := ", ".join(absent):
        warn(f"B has no record of these jobs of A, and nothing says that it was to run them: {named}.")
    return bool(lines.lost) or any(line.verdict is Verdict.SLOWER for line in lines.lines)
