"""`cotenant run`: the flags of a suite."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from cotenant.checkout import PROGRAM, version
from cotenant.commands import GROUPS
from cotenant.commands.flags import Parser, add_format, at_dashes
from cotenant.commands.given import SuiteFlags, add_flags
from cotenant.commands.output import tell
from cotenant.commands.suite_flags import suite_parser

EXIT_STATUSES = "exit: 0 passed, 1 failed, 2 wrong usage, 3 slower, 4 not isolated, 130 stopped"


def main(argv: Sequence[str]) -> int:
    """Run a suite. Returns 0 all passed, 1 a job failed, 3 B of a duet is slower than A, 130 interrupted.

    Raises CotenantError for the rest, also if a benchmark refuses an argument after --.
    """
    ours, others = at_dashes(argv)
    given = SuiteFlags.of(parser().parse_words(ours))
    from cotenant.commands.suite_run import run_suite  # --help imports no module that launches

    return run_suite(given, ours, others)


def parser() -> Parser:
    """Return the parser of `run`; its help is the help of the whole program."""
    parser = suite_parser(
        "",
        "Launch the jobs of a suite, a copy per user at once, each in its own slice.",
        "\n".join(
            [
                f"Arguments after -- go to the benchmarks: {PROGRAM} --name vae -- --repeat 5",
                *_command_lines(),
                f"{PROGRAM} help COMMAND prints a command's flags, help --all all flags.",
                f"{PROGRAM} help findings and help records list all findings and fields, with their meanings.",
                EXIT_STATUSES,
            ]
        ),
    )
    parser.usage = "%(prog)s [flags] [-- arguments of the benchmarks]\n       %(prog)s COMMAND [flags]"
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    printed = parser.add_argument_group("what is printed")
    add = printed.add_argument
    add("--show", action="store_true", help="the chosen jobs with their cells; nothing runs")
    add_flags(add, "--dry", "--verbose")
    add_format(printed)
    add_flags(parser.add_rare_group("what fails").add_argument, "--strict")
    return parser


class _Version(argparse.Action):
    """Prints the version, read only if asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> None:
        tell(f"cotenant {version()}")
        parser.exit()


def _command_lines() -> Iterator[str]:
    for title, commands in GROUPS.items():
        yield f"commands {title}:"
        yield from (f"  {name:15} {meaning}" for name, meaning in commands.items())
