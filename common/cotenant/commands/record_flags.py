"""The flags that say which records a command reads: their places, their suite, jobs and class."""

from __future__ import annotations

import argparse

from cotenant.checkout import output_directory
from cotenant.choices import RUN_CLASSES
from cotenant.commands.flags import place


def add_records(parser: argparse.ArgumentParser) -> None:
    """Add what says which records are read: their places, and of these a suite and some jobs."""
    add = parser.add_argument
    add_places(parser)
    add("--name", metavar="SUITE", help="only records of this suite (its job file's stem)")
    add_names(parser, "job")


def add_class(parser: argparse.ArgumentParser) -> None:
    """Add what says of which class records are: results of the two never stand in one table."""
    what = "only base, or only tuned results: the two never stand in one table (docs/run-rules.md)"
    parser.add_argument("--class", choices=RUN_CLASSES, dest="run_class", help=what)


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add where records are: where suites put them, if nothing is given."""
    where = "where records are, searched recursively; or an export, or `-` (default: the workspace's output)"
    parser.add_argument("places", metavar="DIR", type=place, nargs="*", default=[output_directory()], help=where)


def add_names(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the flag that chooses jobs, or devices, by their names."""
    text = f"only these {what}s: a name, a glob; may be repeated"
    parser.add_argument(f"--{what}", metavar="NAME", action="append", default=[], help=text)
