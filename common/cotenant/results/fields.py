"""Finds a struct's field by names joined by dots, following the declared types; an undeclared name is an error."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from cotenant.decoding import MOST
from cotenant.frames import pl
from cotenant.results.decoded import value_at


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct. `take` returns its value, or None if a part on the way is None.

    `kind` is its type without None and bounds, or `Any` behind an open mapping, in which `keys` lead to the value.
    `bounds` returns whether the type allows values; None if it allows all.
    """

    take: Callable[[Any], Any]
    kind: Any
    keys: tuple[str, ...] = ()
    bounds: Callable[[pl.Expr], pl.Expr] | None = None


def field_at(struct: type, path: str) -> Field:
    """Return the field at this path of a struct; numbers in the path are elements of a tuple.

    Raises AttributeError if the types declare no such field.
    """
    names, kind = path.split("."), _bare(struct)
    steps: list[Callable[[Any], Any]] = []
    for at, name in enumerate(names):
        if get_origin(kind) is dict:
            keys = tuple(names[at:])
            return Field(_chained([*steps, functools.partial(_value_at, keys)]), Any, keys)
        declared = _declared(kind, name)
        steps.append(operator.itemgetter(int(name)) if name.isdecimal() else operator.attrgetter(name))
        kind = _bare(declared)
    return Field(_chained(steps), str if get_origin(kind) is Literal else kind, bounds=_bounds(declared))


def _value_at(keys: tuple[str, ...], mapping: Any) -> Any:
    return value_at(mapping, *keys)


def _declared(kind: Any, name: str) -> Any:
    """Return the declared type of a part."""
    if get_origin(kind) is tuple:
        return get_args(kind)[int(name)]
    if isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or is_dataclass(kind)):
        return getattr(_hints(kind), name)
    raise AttributeError(f"{kind} has no part {name}")


@functools.cache
def _hints(struct: type) -> Any:
    """Return the types of a struct's fields as attributes, so that a missing one raises AttributeError."""
    return type("Hints", (), get_type_hints(struct, include_extras=True))


def _bare(declared: Any) -> Any:
    """Return a type without None and bounds."""
    if get_origin(declared) is Annotated:
        return get_args(declared)[0]
    inner = _known(declared)
    return declared if inner is declared else _bare(inner)


def _known(declared: Any) -> Any:
    """Return a type without None."""
    if get_origin(declared) in (Union, UnionType):
        return next(one for one in get_args(declared) if one is not type(None))
    return declared


def _bounds(declared: Any) -> Callable[[pl.Expr], pl.Expr] | None:
    """Return a check for the bounds of a declared type; None for `Whole`, and for types without bounds."""
    meta = next((one for one in get_args(_known(declared))[1:] if isinstance(one, msgspec.Meta)), None)
    if meta is None or meta.ge == -MOST:
        return None
    limits = {name: limit for name in ("ge", "gt", "le", "lt") if (limit := getattr(meta, name)) is not None}
    return lambda value: pl.all_horizontal(getattr(operator, name)(value, limit) for name, limit in limits.items())


def _chained(steps: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return a function that takes the steps in turn until a part is None."""
    first, *others = steps
    if not others:
        return first

    def take(struct: Any) -> Any:
        part = first(struct)
        for step in others:
            if part is None:
                return None
            part = step(part)
        return part

    return take
