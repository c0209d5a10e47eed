"""`cotenant compare A B`: judges whether B is slower, job by job, for people and for pipelines."""

from __future__ import annotations

from collections.abc import Sequence

from cotenant.api.comparing import compare
from cotenant.commands.flags import Parser, add_format, given_path, share
from cotenant.commands.output import tell, tell_view, warn, write_page
from cotenant.commands.records import spooled
from cotenant.errors import EXIT_PASSED, EXIT_SLOWER
from cotenant.report.comparison import (
    SuiteComparison,
    as_junit,
    comparison_view,
    differences_allowed,
)
from cotenant.stats.verdict import LEAST_MARGIN, Verdict


def main(argv: Sequence[str]) -> int:
    """Compare two sets of records. Returns 0; with --fail-on 3 if a job has that verdict, is lost in B, or cannot be
    compared, or no job was compared. Raises CotenantError for wrong input."""
    given = parser().parse_words(argv)
    a, b, *noise = spooled([given.a, given.b, *([given.noise] if given.noise else [])])
    lines = compare(a, b, margin=given.margin, noise=next(iter(noise), None), allow=given.allow, tell=warn)
    if given.html is not None:
        from cotenant.report.view_pages import comparison_page  # matplotlib takes a second to import

        write_page(given.html, comparison_page(str(given.a), str(given.b), lines))
    if given.format == "junit":
        tell(as_junit(lines))
    else:
        tell_view(comparison_view(lines), given.format)
    return EXIT_SLOWER if given.fail_on and _fails(lines) else EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `compare`."""
    parser = Parser(
        "compare",
        "Compare two sets of records: B over A per job, from at least five launches (uids) on each side.",
        "A verdict comes from the 95 % interval against the margin: FASTER, SLOWER, SAME, UNCLEAR, or INVALID.",
    )
    add = parser.add_argument
    add("a", metavar="A", type=given_path, help="a directory of records, a record, or an export: the reference")
    add("b", metavar="B", type=given_path, help="the records compared to it")
    add_format(parser, ("md", "json", "junit"))
    add("--html", type=given_path, metavar="FILE", help="write one page that works offline")
    add("--fail-on", choices=("slower",), help="exit 3 if a job is SLOWER or INVALID, or ran in A and fails in B")
    what = "compare sides despite this difference; may be repeated"
    add("--allow", action="append", default=[], choices=differences_allowed(), help=what)
    margin = parser.add_mutually_exclusive_group()
    none = f"largest difference that counts as none, as 2%% (default: the launches' noise, {LEAST_MARGIN} at least)"
    margin.add_argument("--margin", type=share, metavar="SHARE", help=none)
    noise = "records of equal launches: a job's margin is twice its noise there, or 2 %%"
    margin.add_argument("--noise", type=given_path, metavar="DIR", help=noise)
    return parser


def _fails(lines: SuiteComparison) -> bool:
    """Return whether a job of A is slower in B, lost, or not comparable; print on standard error the jobs that B lost
    or never had, and the jobs that were not compared."""
    absent = [line.job for line in lines.lines if line.a is not None and line.b is None and line.job not in lines.lost]
    unlike = [line.job for line in lines.lines if None not in (line.a, line.b) and line.comparison is None]
    if named := ", ".join(lines.lost):
        warn(f"A has a rate of these jobs, and B, which ran them or was asked to, has none: {named}.")
    if named := ", ".join(absent):
        warn(f"B has no record of these jobs of A, and nothing says that it was to run them: {named}.")
    if named := ", ".join(unlike):
        warn(f"A and B have rates of these jobs that cannot be compared, for the reason in the table: {named}.")
    none = all(line.comparison is None for line in lines.lines)
    if none:
        warn("No job was compared, so nothing shows that B is not slower.")
    slower = any(line.verdict is Verdict.SLOWER for line in lines.lines)
    return slower or none or bool(lines.lost or unlike)
