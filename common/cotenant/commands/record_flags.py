"""The flags that say which records a command reads: their places, their suite, jobs and class."""

from __future__ import annotations

import argparse

from cotenant.checkout import output_directory
from cotenant.choices import RUN_CLASSES
from cotenant.commands.flags import place


def add_records(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which records are read: their places, and of these a suite and some jobs."""
    add = parser.add_argument
    add_places(parser)
    add("--suite", metavar="SUITE", help="only records of this suite (its job file's stem)")
    add_job_names(parser)


def add_class(parser: argparse.ArgumentParser) -> None:
    """Add the flag that says of which class records are: results of the two never stand in one table."""
    what = "only base, or only tuned results: the two never stand in one table (docs/run-rules.md)"
    parser.add_argument("--class", choices=RUN_CLASSES, dest="run_class", help=what)


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add where records are: where suites put them, if nothing is given."""
    where = "where records are, searched recursively; or an export, or `-` (default: the workspace's output)"
    parser.add_argument("places", metavar="DIR", type=place, nargs="*", default=[output_directory()], help=where)


def add_job_names(parser: argparse.ArgumentParser) -> None:
    """Add the flag that chooses jobs by their names, as that of `run` does."""
    text = "only these jobs: names, globs, comma lists"
    parser.add_argument("--name", "--job", dest="job", metavar="NAMES", action=_Names, default=[], help=text)


class _Names(argparse.Action):
    """Gathers the names between commas, of every time that the flag is given."""

    def __call__(
        self, parser: argparse.ArgumentParser, given: argparse.Namespace, values: object, flag: str | None = None
    ) -> None:
        names = [name for name in str(values).split(",") if name]
        if not names:
            raise argparse.ArgumentError(self, "it names nothing")
        setattr(given, self.dest, [*getattr(given, self.dest), *names])
