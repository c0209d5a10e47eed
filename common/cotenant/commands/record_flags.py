"""The flags that choose the records a command reads: their places, suite, jobs and class."""

from __future__ import annotations

import argparse

from cotenant.checkout import output_directory
from cotenant.choices import RUN_CLASSES
from cotenant.commands.flags import place


def add_records(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose records: by their places, by suite and by jobs."""
    add = parser.add_argument
    add_places(parser)
    add("--suite", metavar="SUITE", help="only records of this suite (its job file's stem)")
    add_job_names(parser)


def add_class(parser: argparse.ArgumentParser) -> None:
    """Add the flag for the class of records: results of two classes never stand in one table."""
    what = "only base, or only tuned results: the two never stand in one table (docs/run-rules.md)"
    parser.add_argument("--class", choices=RUN_CLASSES, dest="run_class", help=what)


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add the places of records, by default the directory where suites put them."""
    where = "where records are, searched recursively; or an export, or `-` (default: the workspace's output)"
    parser.add_argument("places", metavar="DIR", type=place, nargs="*", default=[output_directory()], help=where)


def add_job_names(parser: argparse.ArgumentParser) -> None:
    """Add the flag that chooses jobs by their names, as `run` has it."""
    text = "only these jobs: names, globs, comma lists"
    parser.add_argument("--name", "--job", dest="job", metavar="NAMES", action=_Names, default=[], help=text)


class _Names(argparse.Action):
    """Gathers the names in the comma lists of all uses of a flag."""

    def __call__(
        self, parser: argparse.ArgumentParser, given: argparse.Namespace, values: object, flag: str | None = None
    ) -> None:
        names = [name for name in str(values).split(",") if name]
        if not names:
            raise argparse.ArgumentError(self, "it names nothing")
        setattr(given, self.dest, [*getattr(given, self.dest), *names])
