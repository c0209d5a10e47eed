"""Checks values of open mappings, such as a benchmark's arguments, which may come from any program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from cotenant.decoding import Whole

T = TypeVar("T")
Fields = Mapping[str, Any]


def mapping_of(value: Any) -> Fields:
    """Return the value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """Return a text, or a whole number as text; characters that UTF-8 cannot hold become escapes."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()
    return str(value) if isinstance(value, int) else ""


def part_of(value: Any, kind: type[T]) -> T | None:
    """Return the value as this type, or None if it does not fit."""
    try:
        return None if value is None else msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError):
        return None


def whole_of(value: Any) -> int | None:
    """Return the value if it is a whole number or the text of one; else None."""
    return part_of(int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else value, Whole)


def value_at(fields: Fields, *keys: str) -> Any:
    """Return the value at this path of keys through nested open mappings; None if there is none."""
    value: Any = fields
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def first_of(fields: Fields, *names: str) -> Any:
    """Return the value under the first of these names that has one; None if none has."""
    return next((value for name in names if (value := fields.get(name)) is not None), None)
