"""Shared parts of the commands' flags: errors in one sentence, sizes, times, formats, slices, records."""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

from cotenant.checkout import PROGRAM, output_directory
from cotenant.choices import ISOLATIONS
from cotenant.errors import CotenantError, did_you_mean, refuse_removed, usage_error

if TYPE_CHECKING:
    from cotenant.isolation.device_modes import ShareMode

_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_TIMES = {"": 1, "s": 1, "m": 60, "h": 3600}
_SHARES = {"": 1, "%": 0.01}
_PLACES: dict[int | str | None, str] = {None: " {}", "?": " [{}]", "*": " [{} ...]", "+": " {} ..."}
"""The form of a flag's words in a usage line, by argparse's `nargs`."""


class _Help(argparse.HelpFormatter):
    """Flags in two columns; each line of a description or an epilog is a paragraph, and not folded if indented."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(line if line.startswith(" ") else textwrap.fill(line, width) for line in text.splitlines())


class _HelpAll(argparse.Action):
    """Prints the help with the rare flags."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> None:
        assert isinstance(parser, Parser)
        parser.rare.clear()
        parser.print_help()
        parser.exit()


class Parser(argparse.ArgumentParser):
    """A parser whose errors are CotenantErrors; `hint` is the remedy for an unknown flag that resembles no other.

    Its help leaves out the `rare` groups, which --help-all prints, too.

    `meant` has the advice on other programs' flags.
    """

    def __init__(
        self,
        command: str,
        description: str,
        epilog: str = "",
        hint: str = "--help lists the flags.",
        meant: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(
            prog=f"{PROGRAM} {command}".rstrip(),
            allow_abbrev=False,
            description=description,
            epilog=epilog,
            formatter_class=_Help,
        )
        self._command = command
        self._hint = hint
        self._meant = meant
        self.rare: list[argparse._ArgumentGroup] = []
        no_value = argparse.SUPPRESS
        self._help_all = self.add_argument("--help-all", action=_HelpAll, nargs=0, dest=no_value, help=no_value)

    def add_rare_group(self, title: str) -> argparse._ArgumentGroup:
        """Return a new group of flags that only --help-all shows."""
        self._help_all.help = "show all flags, also the rare ones, and exit"
        self.rare.append(self.add_argument_group(title))
        return self.rare[-1]

    def format_help(self) -> str:
        """Return the help; its usage line has no flags, since they are listed below with their meanings."""
        self.usage = self._usage()
        groups = self._action_groups
        self._action_groups = [group for group in groups if group not in self.rare]
        try:
            return super().format_help()
        finally:
            self._action_groups = groups

    def _usage(self) -> str:
        needed = [
            f" {action.option_strings[0]} {action.metavar}"
            for action in self._get_optional_actions()
            if action.required
        ]
        places = [_PLACES[action.nargs].format(action.metavar) for action in self._get_positional_actions()]
        return self.usage or "".join(["%(prog)s [flags]", *needed, *places])

    def error(self, message: str) -> NoReturn:
        raise usage_error(message, "--help lists the flags.", f"Usage: {self._usage() % {'prog': self.prog}}")

    def flags(self) -> dict[str, list[str]]:
        """Return every flag with the words that it takes, if these are known."""
        return {
            name: list(map(str, action.choices or ())) for action in self._actions for name in action.option_strings
        }

    def parse_words(self, words: Sequence[str]) -> argparse.Namespace:
        """Return the flags in `words`. Raises CotenantError for an unknown flag, with the closest known one."""
        given, unknown = self.parse_known_args(list(words))
        if unknown:
            word = unknown[0].partition("=")[0]
            refuse_removed(word, self._command)
            meant = self._meant.get(word) or did_you_mean(word, self.flags())
            if not unknown[0].startswith("-"):
                raise CotenantError(f"'{unknown[0]}' is no flag, and no other words are allowed here.", self._hint)
            raise CotenantError(f"There is no flag '{unknown[0]}'.", meant or self._hint)
        return given


def at_dashes(words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the words before the first `--`, which are ours, and the words after it, for the launched program."""
    split = words.index("--") if "--" in words else len(words)
    return list(words[:split]), tuple(words[split + 1 :])


def size(text: str) -> int:
    """Return the bytes that `512M` or `2G` stand for."""
    bytes_ = _amount(text, _SIZES, "size such as 512M or 2G")
    if not 0 <= bytes_ < math.inf:
        raise argparse.ArgumentTypeError(f"a size cannot be negative or infinite, as '{text}' is")
    return int(bytes_)


def duration(text: str) -> float:
    """Return the seconds that `60`, `60s`, `2m` or `1h` stand for."""
    seconds = _amount(text, _TIMES, "time such as 60, 60s, 2m or 1h")
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"a time must be positive, and '{text}' is not")
    return seconds


def positive_number(noun: str) -> Callable[[str], float]:
    """Return a flag's type: a number above 0, called `noun` in errors."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"'{text}' is no {noun}")
        return value

    return number


def duration_or_none(text: str) -> float:
    """Return the seconds of a time, or 0 for none."""
    return 0.0 if text in ("0", "0s") else duration(text)


def _share_mode(text: str) -> ShareMode:
    from cotenant.isolation.device_modes import share_mode

    try:
        return share_mode(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _share_modes(text: str) -> list[ShareMode]:
    return [_share_mode(mode.strip()) for mode in text.split(",")]


def share(text: str) -> float:
    """Return the fraction that `1%` or `0.01` stands for."""
    part = _amount(text, _SHARES, "share such as 1% or 0.01")
    if not 0 < part < 1:
        raise argparse.ArgumentTypeError(f"'{text}' does not lie between 0 and 1: 1% is 0.01")
    return part


def _amount(text: str, units: Mapping[str, float], what: str) -> float:
    unit = text[-1:].lower() if text[-1:].lower() in units else ""
    try:
        return float(text[: len(text) - len(unit)]) * units[unit]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no {what}") from None


def given_path(text: str) -> Path:
    """Return a path; refuse an empty one, as from an unset variable, which would be the current directory."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return Path(text)


def add_format(parser: argparse._ActionsContainer, forms: Iterable[str] = ("json",)) -> None:
    """Add the flags that choose the form of a command's output: text, or one of these."""
    add = parser.add_argument
    add("--format", choices=("text", *forms), default="text", help="how to print it (default text)")
    add("--json", action="store_const", const="json", dest="format", help="as --format json: docs/commands.md")


def add_slice_flags(parser: Parser, most: bool = False) -> None:
    """Add the flags for the number of slices, their resources, and their enforcement. `most` is for a search for the
    most users: the default is a slice per device, and several modes of sharing a device can be named."""
    add = parser.add_argument_group("slices").add_argument
    users = "largest number of users to try" if most else "users (default: one per accelerator, else up to 2)"
    add("--users", type=int, metavar="N", help=users)
    how = f"{', '.join(ISOLATIONS[:-1])} or {ISOLATIONS[-1]}"
    add("--isolation", choices=ISOLATIONS, metavar="HOW", help=how)
    add = parser.add_rare_group("slices, further").add_argument
    usual = "one per accelerator, else one" if most else "one per user, if there are enough processors"
    add("--slices", type=int, metavar="N", help=f"number of slices, each with equally many users (default: {usual})")
    turns = "how users share a device: time, mps or mps:PERCENT of its multiprocessors (docs/sharing.md)"
    if most:
        turns += "; each of several, as time,mps, is tried"
    add("--share", type=_share_modes if most else _share_mode, metavar="MODES" if most else "MODE", help=turns)
    add("--no-cgexec", action="store_const", const="none", dest="isolation", help="as --isolation none")
    add("--cgroup-base", metavar="PATH", help="parent of our cgroups in each hierarchy (default cotenant.<login>)")
    add("--plan", choices=("cores", "contiguous"), help="whole cores first, or consecutive ids")
    whose = "a slice's memory comes from its processors' NUMA nodes, or from all (default local)"
    add("--mems", choices=("local", "all"), help=whose)
    add("--reserve", type=size, metavar="BYTES", help="memory kept from users, K/M/G allowed (default max(1G, 3%%))")


def add_records(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose records: by their places, by suite and by jobs."""
    add = parser.add_argument
    add_places(parser)
    add("--suite", metavar="SUITE", help="only records of this suite (its job file's stem)")
    add_job_names(parser)


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add the places of records, by default the directory where suites put them."""
    where = "where records are, searched recursively; or an export, or `-` (default: the workspace's output)"
    parser.add_argument("places", metavar="DIR", type=given_path, nargs="*", default=[output_directory()], help=where)


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
