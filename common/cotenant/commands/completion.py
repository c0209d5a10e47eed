"""`completion bash|zsh|fish`: a script by shtab that completes commands, flags, their choices and shipped jobs."""

from __future__ import annotations

import argparse
import contextlib
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from cotenant.checkout import PROGRAM
from cotenant.commands import COMMANDS
from cotenant.commands.flags import Parser
from cotenant.commands.output import tell
from cotenant.errors import EXIT_PASSED
from cotenant.suite.jobfile import shipped_jobs, shipped_suites


def main(argv: Sequence[str]) -> int:
    """Print the script of a shell. Returns 0; raises CotenantError for another shell."""
    given = parser().parse_words(argv)
    import shtab  # no other command needs it

    tell(shtab.complete(_whole(), given.shell))
    return EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `completion`."""
    parser = Parser(
        "completion",
        "Print a script that lets a shell complete commands, flags and jobs.",
        f'eval "$({PROGRAM} completion bash)" loads it into bash; docs/commands.md has more.',
    )
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
    return parser


def _whole() -> argparse.ArgumentParser:
    """Return one parser with the flags of `run`, and below it a parser for each command; names of jobs are choices."""
    choices: dict[str, Sequence[str]] = dict.fromkeys(("--name", "--exclude", "--mix", "--pairs"), shipped_jobs())
    choices["--jobs"] = shipped_suites()
    root = argparse.ArgumentParser(Path(PROGRAM).name, parents=[_of("run", choices)], conflict_handler="resolve")
    commands = root.add_subparsers()
    commands.add_parser("help", help="a command's flags").add_argument("command", choices=tuple(COMMANDS))
    for name, meaning in COMMANDS.items():
        # The --name of mlbench-report names a suite, as in the original. Some packages can be left out.
        with contextlib.suppress(ModuleNotFoundError):
            flags = _of(name, {} if name == "mlbench-report" else choices)
            commands.add_parser(name, help=meaning, parents=[flags], conflict_handler="resolve")
    return root


def _of(command: str, choices: Mapping[str, Sequence[str]]) -> Parser:
    parser: Parser = importlib.import_module(f"cotenant.commands.{command.replace('-', '_')}").parser()
    for action in parser._actions:
        action.choices = next((choices[flag] for flag in action.option_strings if flag in choices), action.choices)
    return parser
