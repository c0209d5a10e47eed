"""Typed class attributes of a benchmark become its flags.

An annotated attribute is a flag: `hidden: int = 400` is `--hidden N`. `flag(...)` gives it other spellings, choices
or a help text, `positional(...)` makes it an optional positional argument, and `ignored = {"--no-checks": 0}`
names spellings that are accepted, with their number of values, and have no effect.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cotenant.errors import CotenantError
from cotenant.results.record import Record

# A record holds the arguments flat, beside its own fields. Every benchmark's `devices` and `skip` are also fields.
_TAKEN = frozenset(Record.__struct_fields__) - {"devices", "skip"}


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


def declared(cls: type) -> dict[str, tuple[Any, Flag]]:
    """Return each parameter's type and flag, those of the base classes first.

    A plain value in a subclass is a new default: spellings and help stay as they were declared.
    Raises CotenantError for a name that a record or the contract already uses.
    """
    found: dict[str, tuple[Any, Flag]] = {}
    for owner in reversed(cls.__mro__):
        hints = typing.get_type_hints(owner)
        for name in _own(owner, found):
            kind = hints[name]
            if kind is typing.ClassVar or typing.get_origin(kind) is typing.ClassVar:
                continue
            if name not in found:
                _refuse_taken(cls, owner, name)
            default = vars(owner)[name]
            if not isinstance(default, Flag):
                before = found[name][1] if name in found else Flag(None)
                default = dataclasses.replace(before, default=default)
            found[name] = (kind, default)
    return found


def _own(owner: type, found: dict[str, Any]) -> Iterator[str]:
    """Yield what `owner` declares, and what it only gives another default."""
    annotated = inspect.get_annotations(owner)
    yield from annotated
    yield from (name for name in vars(owner) if name in found and name not in annotated)


def _refuse_taken(cls: type, owner: type, name: str) -> None:
    place = f"{cls.__name__} declares the parameter '{name}'"
    if name not in vars(owner):
        raise CotenantError(f"{place} without a default.", f"Write `{name}: ... = <default>`.")
    if name in _TAKEN:
        raise CotenantError(f"{place}, and every record has a field of that name.", "Call the parameter otherwise.")
    if any(name in vars(base) for base in owner.__mro__[1:]):
        raise CotenantError(
            f"{place}, and the contract has something of that name.", "Call it otherwise, or leave the annotation out."
        )
