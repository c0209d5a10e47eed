"""Typed class attributes of a benchmark become its flags.

An annotated attribute is a flag: `hidden: int = 400` is `--hidden N`. `flag(...)` gives it other spellings, choices
or a help text, `positional(...)` makes it an optional positional argument, and `ignored = {"--no-checks": 0}`
names spellings that are accepted, with their number of values, and have no effect.
"""

from __future__ import annotations

import argparse
import inspect
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from cotenant.errors import CotenantError, did_you_mean


@dataclass(frozen=True, slots=True)
class Flag:
    """How one parameter is spelled on the command line; `names` empty means `--` and the attribute's name."""

    default: Any
    names: tuple[str, ...] = ()
    help: str = ""
    positional: bool = False


def flag(default: Any, *names: str, help: str = "") -> Any:  # noqa: A002
    """Declare a parameter with its own spellings, the long one first, and a help text."""
    return Flag(default, names, help)


def positional(default: Any, help: str = "", *names: str) -> Any:  # noqa: A002
    """Declare a parameter that may also stand without a flag; `names` are flags that set it as well."""
    return Flag(default, names, help, positional=True)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The values of every parameter, and the accepted flags without effect as they were given."""

    values: dict[str, Any]
    ignored: list[str] = field(default_factory=list)


def declared(cls: type) -> dict[str, tuple[Any, Flag]]:
    """Return each parameter's type and flag, those of the base classes first."""
    hints = typing.get_type_hints(cls)
    found: dict[str, tuple[Any, Flag]] = {}
    for owner in reversed(cls.__mro__):
        for name in inspect.get_annotations(owner):
            if typing.get_origin(hints[name]) is typing.ClassVar:
                continue
            default = getattr(cls, name)
            found[name] = (hints[name], default if isinstance(default, Flag) else Flag(default))
    return found


def parse(cls: type, argv: Sequence[str]) -> Parsed:
    """Parse `argv` by the parameters of `cls`. Raises CotenantError for anything that is not understood."""
    parser = _Parser(prog="main.py", description=cls.__doc__, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    parameters = declared(cls)
    for name, (kind, how) in parameters.items():
        _add(parser, name, kind, how)
    for spelling, values in getattr(cls, "ignored", {}).items():
        parser.add_argument(spelling, nargs=values, dest=f"ignored {spelling}", help="accepted, no effect")
    namespace, unknown = parser.parse_known_args(list(argv))
    if unknown:
        known = [name for action in parser._actions for name in action.option_strings]
        raise CotenantError(
            f"This benchmark knows no argument '{unknown[0]}'.",
            did_you_mean(unknown[0].partition("=")[0], known) or "--help lists its flags.",
        )
    given = vars(namespace)
    values = {name: given.get(name, how.default) for name, (_, how) in parameters.items()}
    return Parsed(values, [key.removeprefix("ignored ") for key in given if key.startswith("ignored ")])


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CotenantError(f"This benchmark cannot read its arguments: {message}.", "--help lists its flags.")


def _add(parser: argparse.ArgumentParser, name: str, kind: Any, how: Flag) -> None:
    options = _options(kind)
    text = (how.help + f" (default: {how.default})").strip().replace("%", "%%")
    if how.positional:
        parser.add_argument(name, nargs="?", metavar=name.upper(), help=text, **options)
        if not how.names:
            return
    names = how.names or ("--" + name.replace("_", "-"),)
    if kind is bool:
        long = names[0].removeprefix("--")
        parser.add_argument(*names, dest=name, action="store_true", help=text)
        parser.add_argument(f"--no-{long}", dest=name, action="store_false", help=argparse.SUPPRESS)
    else:
        parser.add_argument(*names, dest=name, help=text, **options)


def _options(kind: Any) -> dict[str, Any]:
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        (kind,) = (one for one in typing.get_args(kind) if one is not type(None))
    if typing.get_origin(kind) is typing.Literal:
        choices = typing.get_args(kind)
        return {"type": type(choices[0]), "choices": choices}
    if typing.get_origin(kind) is tuple:
        return {"nargs": "+", "action": _Words, "type": str, "each": typing.get_args(kind)[0]}
    return {"type": Path if kind is Path else kind} if kind is not bool else {}


class _Words(argparse.Action):
    """Several values, given as several words or as one quoted word."""

    def __init__(self, *arguments: Any, each: type, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.each = each

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        try:
            words = tuple(self.each(word) for value in values for word in value.split())
        except ValueError as error:
            parser.error(f"argument {option_string}: {error}")
        setattr(namespace, self.dest, words)
