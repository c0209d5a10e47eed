"""`cotenant report DIR`: prints the results in a directory of records, for people and for other programs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from cotenant.api.tables import MAKERS
from cotenant.checkout import PROGRAM, PUBLISHED
from cotenant.choices import FORMS
from cotenant.commands.flags import Parser, add_format, add_records, given_path
from cotenant.errors import CotenantError

OF_SYSTEMS = ("throughput", "batch-size", "speed-up", "scaling")
"""Tables of systems side by side, and of a job over several devices."""
TABLES = {name: maker.subject for name, maker in MAKERS.items() if name != "jobs"}


def main(argv: Sequence[str]) -> int:
    """Report on records. Returns 0, or raises CotenantError for wrong input."""
    given = parser().parse_words(argv)
    _check(given)
    from cotenant.commands.views import report  # --help imports no module that reads records

    return report(given)


def parser() -> Parser:
    """Return the parser of `report`."""
    parser = Parser(
        "report",
        "Rates with their intervals, per job and user; findings with their remedies.",
        "See docs/reports.md for every column, and for the tables other suites' readers know.",
    )
    add = parser.add_argument
    add_records(parser)
    add_format(parser, FORMS)
    add("--html", type=Path, metavar="FILE", help="write one page that works offline")
    figures = "write each chart of the page as SVG and as PDF"
    add("--figures", type=given_path, metavar="DIR", help=figures)
    add("--title", metavar="TEXT", help="the page's title")
    add("--targets", metavar="MODEL", help="score against V100, MI50, RTX, or a CSV file of targets")
    expected = "the job file whose jobs, by their weights, the score expects (default: all targets)"
    add("--jobs", metavar="FILE", help=expected)
    add("--save-target", metavar="NAME", help="write targets/NAME.csv, or a .csv file, from the measured rates")
    add(
        "--table",
        choices=(*OF_SYSTEMS, *TABLES),
        help="systems side by side (throughput, batch-size, speed-up), one job over devices (scaling), "
        + ", ".join(f"{subject} ({name})" for name, subject in TABLES.items()),
    )
    add("--precision", metavar="P", help="for throughput and batch-size: print this precision only")
    add("--outdir", type=given_path, metavar="DIR", help="for throughput and batch-size: a file per precision in here")
    described = "descriptions of the systems; single or multiple: only rows of one device, or of several"
    add("--systems", metavar="FILE|single|multiple", action="append", default=[], help=described)
    add("--reference", metavar="SYSTEM", help="throughput relative to this row")
    published = (
        "rows of a published table (CSV or JSON); may be repeated. For scaling also "
        f"{' and '.join(sorted(path.stem for path in PUBLISHED.glob('*.csv')))}, which are included"
    )
    add("--foreign", type=Path, metavar="FILE", action="append", default=[], help=published)
    add("--per", choices=("watt", "price"), help="throughput per watt, or per price")
    return parser


def _check(given: argparse.Namespace) -> None:
    """Raise CotenantError for flags that have no effect beside the others."""
    crossing = given.table in ("throughput", "batch-size")
    of_tables = [name for name in ("precision", "outdir", "reference", "per") if getattr(given, name)]
    if of_tables and not crossing:
        raise CotenantError(f"--{of_tables[0]} is for --table throughput and batch-size.", "Add one of them.")
    if given.foreign and not (crossing or given.table == "scaling"):
        raise CotenantError("--foreign is for --table throughput, batch-size and scaling.", "Add one of them.")
    if given.foreign and given.table == "scaling" and given.format == "md":
        raise CotenantError("--format md holds one series of ours.", "--foreign goes with text, csv and json.")
    if given.table == "batch-size" and (given.reference or given.per):
        raise CotenantError("Batch sizes are not relative to anything.", "--reference and --per are for throughput.")
    if crossing and given.format == "md":
        raise CotenantError(f"--table {given.table} is CSV or JSON.", "Leave out --format, or use --format json.")
    if given.jobs and not given.targets:
        raise CotenantError("--jobs names the jobs that a score expects.", "Add --targets.")
    if given.targets and not (given.html or given.save_target):
        raise CotenantError(
            "--targets names the targets of a page's score.", f"Add --html FILE, or use {PROGRAM} mlbench-report."
        )
    if given.title and not given.html:
        raise CotenantError("--title is the title of a page.", "Add --html FILE.")
