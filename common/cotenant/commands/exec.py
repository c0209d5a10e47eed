"""`cotenant exec`: any command as a tenant, several copies of it at once, each in its own slice."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cotenant.checkout import PROGRAM
from cotenant.choices import BaselineKind
from cotenant.commands.flags import Parser, add_format, add_slice_flags, at_dashes, positive_number
from cotenant.commands.given import CommandFlags, add_flags
from cotenant.errors import CotenantError
from cotenant.suite.duets import BETWEEN, Duet, words_of_sides

if TYPE_CHECKING:
    from cotenant.launch.start import Options
    from cotenant.machine.topology import Machine

EXAMPLE = f"{PROGRAM} exec --users 2 -- python train.py --out runs/{{user}}"
DUET_USAGE = f"As {PROGRAM} exec --duet -- python old.py {BETWEEN} python new.py"
NOT_OF_DUETS = ("baseline", "slices", "share")
"""Flags for tenants, slices and turns, which a duet already sets."""

COPIES = (
    "Each copy is a real run that writes: {user} in a word becomes its number, from 0, and {uid} the repetition's; "
    "COTENANT_TENANT, TMPDIR and MASTER_PORT differ between copies, so that each can have paths of its own."
)
COUNTED = (
    "Cotenant counts the steps of the first torch optimizer in use; else lines (--count-line); else each run of the "
    "whole command is one observation. In a program, cotenant.measure counts any loop."
)


def main(argv: Sequence[str]) -> int:
    """Run copies of a command. Returns 0 all passed, 1 one failed, 3 SLOWER, 130 interrupted. Raises CotenantError."""
    ours, words = at_dashes(argv)
    given = CommandFlags.of(parser().parse_words(ours))
    from cotenant.commands.suite_run import run_suite_of  # --help imports no module that launches

    if not words:
        raise CotenantError("There is no command after --.", EXAMPLE)
    return run_suite_of(
        given, lambda machine: replace(options_of_command(given, words, machine), words=("exec", *argv))
    )


def parser() -> Parser:
    """Return the parser of `exec`."""
    parser = Parser(
        "exec",
        "Start copies of any command at once, each in its own slice, and measure what each keeps beside the others.",
        "\n".join(
            [
                f"The command comes after --: {EXAMPLE}",
                COPIES,
                COUNTED,
                "After the measurement a program is ended: SIGTERM, and SIGKILL 10 s later.",
                "exit status: 0 passed, 1 failed, 2 wrong usage, 3 SLOWER, 4 not isolated, 130 stopped",
            ]
        ),
    )
    parser.usage = f"%(prog)s [flags] -- COMMAND [WORDS ...] [{BETWEEN} COMMAND [WORDS ...]]"
    turns = "is the second command slower? both take turns in the same slices: -- COMMAND_A --- COMMAND_B"
    parser.add_argument_group("what runs").add_argument("--duet", action="store_true", help=turns)
    add_counting(parser)
    add_slice_flags(parser)
    add = parser.add_argument_group("how it is measured").add_argument
    add_flags(add, "--baseline", "--budget", "--until-interval", "--ready-timeout", "--timeout")
    again = "restart a program that ends before it is measured"
    add("--again", action="store_true", help=again)
    _add_kept(parser)
    return parser


def add_counting(parser: Parser) -> None:
    add = parser.add_argument_group("what is counted").add_argument
    add("--item", metavar="NAME", help="name of a counted item; `row` counts the rows of the batches")
    add(
        "--items",
        type=positive_number("number of items"),
        metavar="N",
        help="items in a step, a line or a run",
    )
    add("--count-line", type=_pattern, metavar="REGEX", help="a line of output is a step: '^step (\\d+)'")
    ready = "count only after a line like this, such as a server's first; with --count-line"
    add("--ready-line", type=_pattern, metavar="REGEX", help=ready)
    add("--runs", type=int, metavar="N", help="runs of a command that does not step (default 10)")


def _add_kept(parser: Parser) -> None:
    kept = parser.add_argument_group("what is kept and printed")
    add = kept.add_argument
    add("--as", dest="name", metavar="NAME", help="name of its records (default: the script's)")
    add_flags(add, "--outdir", "--uid", "--repetitions", "--resume", "--dry", "--verbose", "--strict")
    add_format(kept)


def _pattern(text: str) -> str:
    try:
        re.compile(text.encode())
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}' is no regular expression: {error}") from None
    return text


def options_of_command(given: CommandFlags, words: Sequence[str], machine: Machine) -> Options:
    """Return the options of a suite of one job. Raises CotenantError for flags that make no sense."""
    from cotenant.commands.suite_options import usual_options
    from cotenant.suite.cells import Job
    from cotenant.suite.fields import checked_name
    from cotenant.suite.foreign import SUITE, Foreign
    from cotenant.suite.jobfile import Suite

    if given.runs < 1:
        raise CotenantError(f"--runs {given.runs} is no number of runs.", "Count from 1.")
    if given.ready_line and not given.count_line:
        raise CotenantError(
            "--ready-line says when to begin, but nothing says what to count.", "Add --count-line REGEX."
        )
    sides = _sides(given, tuple(words))
    counted = (given.item, given.items, given.ready_line, given.count_line, given.runs)
    foreign = Foreign(sides[0], *counted, given.again)
    name = checked_name(given.name or foreign.stem)
    job = Job(name, foreign.shown, (), "student", stem=name, foreign=foreign)
    duet = Duet(name, sides) if sides[1] else None
    options = usual_options(given, machine, Suite(SUITE, Path.cwd() / SUITE, (job,)), () if duet else (job,), duet)
    usual: BaselineKind = "none" if duet or given.isolation == "none" else "blocks"
    return replace(options, baseline=usual if duet else given.baseline or usual)


def _sides(given: CommandFlags, words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the commands of both sides, the second one empty if there is no duet. Raises CotenantError."""
    from cotenant.commands.suite_options import check_alone

    if given.duet:
        check_alone(given, NOT_OF_DUETS, DUET_USAGE)
        sides = words_of_sides(words, DUET_USAGE)
        if not all(sides):
            raise CotenantError(f"--duet compares two commands, and one side of {BETWEEN} has none.", DUET_USAGE)
        return sides
    if BETWEEN in words:
        raise CotenantError(f"{BETWEEN} stands between two commands, and there is no --duet.", DUET_USAGE)
    return words, ()
