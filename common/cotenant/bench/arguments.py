"""From a command line to a benchmark's parameters. Nothing is swallowed: what is not understood is an error."""

from __future__ import annotations

import argparse
import inspect
import re
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from cotenant.bench.parameters import Flag, declared
from cotenant.errors import CotenantError, did_you_mean

_NEGATIVE_NUMBER = re.compile(r"-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")
# Places in argparse's namespace that no parameter's name can take.
_POSITIONAL, _IGNORED = "positional ", "ignored "
_PLACEHOLDERS = {int: "N", float: "X", Path: "PATH", str: "TEXT"}


@dataclass(frozen=True, slots=True)
class Parsed:
    """The values of every parameter, the given flags that are accepted without effect, and the parameters given."""

    values: dict[str, Any]
    ignored: list[str] = field(default_factory=list)
    given: frozenset[str] = frozenset()


def parse(cls: type, argv: Sequence[str]) -> Parsed:
    """Parse `argv` by the parameters of `cls`. Raises CotenantError for anything that is not understood."""
    parameters, parser = declared(cls), _parser(cls)
    # Intermixed: positionals may stand anywhere between the flags, as a job file's keys do.
    namespace, unknown = parser.parse_known_intermixed_args(list(argv))
    if unknown:
        known = [name for action in parser._actions for name in action.option_strings]
        raise CotenantError(
            f"This benchmark knows no argument '{unknown[0]}'.",
            did_you_mean(unknown[0].partition("=")[0], known) or "--help lists its flags.",
        )
    given = {name: value for name, value in vars(namespace).items() if value is not None}
    values = {
        name: given.get(_POSITIONAL + name, given.get(name, how.default)) for name, (_, how) in parameters.items()
    }
    ignored = [spelling for spelling in _ignored(cls) if _IGNORED + spelling in given]
    named = frozenset(name for name in parameters if name in given or _POSITIONAL + name in given)
    return Parsed(values, ignored, named)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CotenantError(f"This benchmark cannot read its arguments: {message}.", "--help lists its flags.")


def _parser(cls: type) -> argparse.ArgumentParser:
    parameters = declared(cls)
    positionals = [f" [{name.upper()}]" for name, (_, how) in parameters.items() if how.positional]
    parser = _Parser(
        prog="main.py",
        usage="%(prog)s [flags]" + "".join(positionals),
        description=inspect.getdoc(cls),
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=36, width=110),
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    # argparse's own pattern takes -1e-05 for a flag.
    parser._negative_number_matcher = _NEGATIVE_NUMBER
    root = inspect.get_annotations(cls.__mro__[-2])
    own, common = parser.add_argument_group("this benchmark"), parser.add_argument_group("every benchmark")
    for name, (kind, how) in parameters.items():
        _add(common if name in root else own, name, kind, how)
    without_effect = parser.add_argument_group("accepted, without effect")
    for spelling, count in _ignored(cls).items():
        values: dict[str, Any] = {"nargs": count, "metavar": "VALUE"} if count else {"action": "store_true"}
        without_effect.add_argument(spelling, dest=_IGNORED + spelling, **values)
    return parser


def _ignored(cls: type) -> dict[str, int]:
    return getattr(cls, "ignored", {})


def _add(group: argparse._ArgumentGroup, name: str, kind: Any, how: Flag) -> None:
    options = _options(kind) | {"help": _help(how)}
    if how.positional:
        group.add_argument(_POSITIONAL + name, nargs="?", default=None, **(options | {"metavar": name.upper()}))
        if not how.names:
            return
    group.add_argument(*(how.names or ("--" + name.replace("_", "-"),)), dest=name, **options)


def _help(how: Flag) -> str:
    if how.default is None:
        return how.help.replace("%", "%%")
    words = how.default if isinstance(how.default, tuple) else [how.default]
    shown = {True: "yes", False: "no"}[how.default] if isinstance(how.default, bool) else " ".join(map(str, words))
    return f"{how.help} (default: {shown})".strip().replace("%", "%%")


def _options(kind: Any) -> dict[str, Any]:
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        (kind,) = (one for one in typing.get_args(kind) if one is not type(None))
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    if typing.get_origin(kind) is typing.Literal:
        choices = typing.get_args(kind)
        return {"type": type(choices[0]), "choices": choices}
    if typing.get_origin(kind) is tuple:
        each = typing.get_args(kind)[0]
        return {"nargs": "+", "action": _Words, "each": each, "metavar": _PLACEHOLDERS[each]}
    return {"type": kind, "metavar": _PLACEHOLDERS[kind]}


class _Words(argparse.Action):
    """Several values, given as several words or as one quoted word."""

    def __init__(self, *arguments: Any, each: type, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.each = each

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        words = [word for value in values for word in value.split()]
        try:
            setattr(namespace, self.dest, tuple(self.each(word) for word in words))
        except ValueError:
            parser.error(f"argument {option_string}: '{' '.join(words)}' are not all of type {self.each.__name__}")
