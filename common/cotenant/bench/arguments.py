"""Typed class attributes of a benchmark become its flags, and a command line becomes their values.

An annotated attribute is a flag: `hidden: int = 400` is `--hidden N`. `flag(...)` gives it other spellings, a help text
or a least value, `positional(...)` makes it an optional positional argument, and `ignored = {"--no-checks": 0}`
names spellings that are accepted, with their number of values, and have no effect. `aliases = {"--model":
"--network"}` names other suites' words, and the words that they become. Any other flag is an error.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from cotenant.errors import CotenantError, did_you_mean, refuse_removed, usage_error
from cotenant.results.record import Record

# A record holds the arguments flat, beside its own fields. Every benchmark's `devices` and `skip` are also fields.
_TAKEN = frozenset(Record.__struct_fields__) - {"devices", "skip"}


@dataclass(frozen=True, slots=True)
class Flag:
    """One parameter's spellings, default and help; without `names` it is spelled `--` and the attribute's name."""

    default: Any
    names: tuple[str, ...] = ()
    help: str = ""
    positional: bool = False
    least: int = 1
    """The least value of a whole number, or of each of several."""

    def spellings(self, name: str) -> tuple[str, ...]:
        """Return the flags of the parameter of this name."""
        return self.names or ("--" + name.replace("_", "-"),)


def flag(default: Any, *names: str, help: str = "", least: int = 1) -> Any:  # noqa: A002
    """Declare a parameter with spellings of its own, the long one first, a help text, and a least whole number."""
    return Flag(default, names, help, least=least)


def positional(default: Any, help: str = "", *names: str) -> Any:  # noqa: A002
    """Declare a parameter that may also stand without a flag; `names` are flags that set it as well."""
    return Flag(default, names, help, positional=True)


def declared(cls: type) -> dict[str, tuple[Any, Flag]]:
    """Return each parameter's type and flag, those of the base classes first.

    A plain value in a subclass is a new default: spellings and help stay as they were declared.
    Raises CotenantError for one without a default, or with a name that a record or the contract already uses.
    """
    parameters: dict[str, tuple[Any, Flag]] = {}
    for owner in reversed(cls.__mro__):
        hints = _hints(owner)
        # The class's own declarations, and inherited ones to which it only gives another default.
        for name in {**inspect.get_annotations(owner), **{name: None for name in vars(owner) if name in parameters}}:
            kind = hints[name]
            if kind is ClassVar or get_origin(kind) is ClassVar:
                continue
            if name not in parameters:
                _refuse_taken(cls, owner, name)
            default = vars(owner)[name]
            if not isinstance(default, Flag):
                before = parameters[name][1] if name in parameters else Flag(None)
                default = replace(before, default=default)
            parameters[name] = (kind, default)
    return parameters


_hints = functools.cache(get_type_hints)
"""Returns the annotations of a class and its bases as types; cached, as each is compiled from its text."""


def _refuse_taken(cls: type, owner: type, name: str) -> None:
    if name not in vars(owner):
        problem = "without a default"
    elif name in _TAKEN:
        problem = "which is the name of a field of every record"
    elif any(name in vars(base) for base in owner.__mro__[1:]):
        problem = "which is a name of the contract"
    else:
        return
    remedy = f"Write `{name}: ... = <default>`, call it otherwise, or leave the annotation out."
    raise CotenantError(f"{cls.__name__} declares the parameter '{name}', {problem}.", remedy)


MEANT = {"--model": "Its model is its own: --name chooses another job, and --jobs scaling takes --model."}
"""Other suites' flags, and their equivalents here."""
_NEGATIVE_NUMBER = re.compile(r"-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")
# Places in argparse's namespace that no parameter's name can take.
_POSITIONAL, _IGNORED = "positional ", "ignored "
_PLACEHOLDERS = {int: "N", float: "X", Path: "PATH", str: "TEXT"}


@dataclass(frozen=True, slots=True)
class Parsed:
    """The values of all parameters, the ignored flags, and the names of the parameters given.

    `renamed` has a sentence for each word of another suite, which names our word.
    """

    values: dict[str, Any]
    ignored: list[str]
    given: frozenset[str]
    renamed: list[str]


def parse(cls: type, argv: Sequence[str]) -> Parsed:
    """Parse `argv` by the parameters of `cls`. Raises CotenantError for an unknown or malformed word."""
    parameters, parser = declared(cls), _parser(cls)
    argv, renamed = _in_own_words(cls, argv)
    # Intermixed: positionals may stand anywhere between the flags, as a job file's keys do.
    namespace, unknown = parser.parse_known_intermixed_args(_attached(argv, parameters))
    if unknown:
        spellings = [name for action in parser._actions for name in action.option_strings]
        word = unknown[0].partition("=")[0]
        refuse_removed(word)
        raise CotenantError(
            f"This benchmark has no argument '{unknown[0]}'.",
            MEANT.get(word) or did_you_mean(word, spellings) or "--help lists its flags.",
        )
    given = {name: value for name, value in vars(namespace).items() if value is not None}
    values = {
        name: given.get(_POSITIONAL + name, given.get(name, how.default)) for name, (_, how) in parameters.items()
    }
    values |= {name: tuple(chain(*value)) for name, value in values.items() if isinstance(value, list)}
    ignored = [spelling for spelling in getattr(cls, "ignored", {}) if _IGNORED + spelling in given]
    named = frozenset(name for name in parameters if name in given or _POSITIONAL + name in given)
    return Parsed(values, ignored, named, renamed)


def _in_own_words(cls: type, argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words with other suites' words replaced, and a sentence for each replaced one."""
    aliases = getattr(cls, "aliases", {})
    words: list[str] = []
    for word in argv:
        name, attached, value = word.partition("=")
        *before, last = aliases[name].split() if name in aliases else [name]
        words += [*before, last + attached + value]
    given = dict.fromkeys(word.partition("=")[0] for word in argv)
    return words, [f"{name} is {aliases[name]} here." for name in given if name in aliases]


def _attached(words: Sequence[str], parameters: Mapping[str, tuple[Any, Flag]]) -> list[str]:
    """Return the words with each flag's optional word attached, so that a following positional is not taken for it.

    A flag without one gets its first choice.
    """
    optional = {
        spelling: choices
        for name, (kind, how) in parameters.items()
        if (choices := _optional_words(kind))
        for spelling in how.spellings(name)
    }
    attached = list[str]()
    for word in words:
        if attached and word in optional.get(attached[-1], ()):
            attached[-1] += f"={word}"
        else:
            attached.append(word)
    return [f"{word}={optional[word][0]}" if word in optional else word for word in attached]


def _optional_words(kind: Any) -> tuple[str, ...]:
    """Return the words that may follow a switch, declared as `bool | Literal[...]`; none for any other kind."""
    members = get_args(kind)
    return get_args(members[1]) if members[:1] == (bool,) and len(members) == 2 else ()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise usage_error(message, "--help lists its flags.")


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
    group, common = parser.add_argument_group("this benchmark"), parser.add_argument_group("every benchmark")
    for name, (kind, how) in parameters.items():
        _add(common if name in root else group, name, kind, how)
    without_effect = parser.add_argument_group("accepted, without effect")
    for spelling, count in getattr(cls, "ignored", {}).items():
        values: dict[str, Any] = {"nargs": count, "metavar": "VALUE"} if count else {"action": "store_true"}
        without_effect.add_argument(spelling, dest=_IGNORED + spelling, **values)
    parser.epilog = " ".join(f"{name} is {ours}." for name, ours in getattr(cls, "aliases", {}).items()) or None
    return parser


def _add(group: argparse._ArgumentGroup, name: str, kind: Any, how: Flag) -> None:
    options = _options(kind) | {"help": _help(how)}
    if how.positional:
        group.add_argument(_POSITIONAL + name, nargs="?", default=None, **(options | {"metavar": name.upper()}))
        if not how.names:
            return
    group.add_argument(*how.spellings(name), dest=name, **options)
    if _optional_words(kind):
        group.add_argument(
            f"--no-{how.spellings(name)[0][2:]}", dest=name, action="store_false", help="run the code as it is"
        )


def _help(how: Flag) -> str:
    if how.default is None:
        return how.help.replace("%", "%%")
    words = how.default if isinstance(how.default, tuple) else [how.default]
    shown = {True: "yes", False: "no"}[how.default] if isinstance(how.default, bool) else " ".join(map(str, words))
    return f"{how.help} (default: {shown})".strip().replace("%", "%%")


def _options(kind: Any) -> dict[str, Any]:
    if words := _optional_words(kind):
        return {"nargs": "?", "choices": words}
    if get_origin(kind) in (types.UnionType, Union):
        (kind,) = (member for member in get_args(kind) if member is not type(None))
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return {"type": type(choices[0]), "choices": choices}
    if get_origin(kind) is tuple:
        element = get_args(kind)[0]
        return {"nargs": "+", "type": _words(element), "metavar": _PLACEHOLDERS[element]}
    return {"type": kind, "metavar": _PLACEHOLDERS[kind]}


def _words(kind: type) -> Callable[[str], list[Any]]:
    """Return the function that reads several values of one type, given as several words or as one quoted word."""

    def read(text: str) -> list[Any]:
        return [kind(word) for word in text.split()]

    read.__name__ = kind.__name__  # For argparse's sentence about a word that it cannot read.
    return read
