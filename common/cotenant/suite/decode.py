"""Decodes a text to the entries of its JSON list, with their places. Stricter than `json`: no NaN, no key twice."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from cotenant.errors import CotenantError
from cotenant.text import quoted

_WHITE = " \t\n\r"
# The integers that the resolved suite and the records can hold.
_INT_LOW, _INT_HIGH = -(2**63), 2**64 - 1


@dataclass(frozen=True, slots=True)
class JsonEntry:
    """One element of the list; `place` is `source:line:column`, both from 1."""

    place: str
    value: object


@contextmanager
def at(place: str) -> Iterator[None]:
    """Put `place: ` before the sentence of every CotenantError raised inside."""
    try:
        yield
    except CotenantError as error:
        raise CotenantError(f"{place}: {error.sentence}", error.remedy) from None


def kind(value: object) -> str:
    """Name a decoded JSON value as its author would: `true`, `null`, `a list`, `the number 3` ..."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the string {quoted(value)}"
    if isinstance(value, int | float):
        return f"the number {value!r}"
    return "a list" if isinstance(value, list) else "an object"


def decode_list(text: str, source: str) -> tuple[JsonEntry, ...]:
    """Return the elements of the JSON list in `text`, at least one; `source` is the file's name in errors.

    Raises a CotenantError with a sentence that starts with `source:line:column: `.
    """
    start = _skip(text, 0)
    place = _place(text, start, source)
    if start == len(text):
        raise CotenantError(f"{place}: the file is empty.", "A job file is a JSON list of jobs.")
    if text[start] != "[":
        value, _ = _element(text, start, source)
        raise CotenantError(f"{place}: the top level is {kind(value)}, not a list.", "Put the jobs between [ and ].")
    entries, end = _elements(text, start, source)
    after = _skip(text, end)
    if after < len(text):
        raise _malformed(_place(text, after, source), "there is text after the list's closing bracket")
    if not entries:
        raise CotenantError(f"{place}: the list is empty.", "Write at least one job.")
    return entries


def _elements(text: str, start: int, source: str) -> tuple[tuple[JsonEntry, ...], int]:
    """Decode elements one by one, so that the place of each is known; also return the position after the list."""
    entries: list[JsonEntry] = []
    here = _skip(text, start + 1)
    if text[here : here + 1] == "]":
        return (), here + 1
    while True:
        value, end = _element(text, here, source)
        entries.append(JsonEntry(_place(text, here, source), value))
        mark = _skip(text, end)
        if text[mark : mark + 1] == "]":
            return tuple(entries), mark + 1
        if text[mark : mark + 1] != ",":
            raise _malformed(_place(text, mark, source), "a comma or ']' is missing")
        here = _skip(text, mark + 1)
        if text[here : here + 1] == "]":
            raise _malformed(_place(text, mark, source), "there is a comma after the last job")


def _element(text: str, start: int, source: str) -> tuple[object, int]:
    with at(_place(text, start, source)):
        try:
            return _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            broken = error
        except RecursionError:
            raise CotenantError("lists or objects are nested too deeply.", "A job needs three levels.") from None
    raise _malformed(_place(text, broken.pos, source), broken.msg[:1].lower() + broken.msg[1:])


def _malformed(place: str, what: str) -> CotenantError:
    return CotenantError(f"{place}: not valid JSON: {what}.", "Correct it there or just before.")


def _skip(text: str, start: int) -> int:
    while start < len(text) and text[start] in _WHITE:
        start += 1
    return start


def _place(text: str, position: int, source: str) -> str:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return f"{source}:{line}:{column}"


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    decoded: dict[str, object] = {}
    for key, value in pairs:
        if key in decoded:
            raise CotenantError(f"the key {quoted(key)} stands twice in one object.", "Keep one of the two.")
        for text in (key, *(value if isinstance(value, list) else (value,))):
            if isinstance(text, str) and any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in text):
                raise CotenantError(
                    f"{quoted(text)} holds a NUL or half of a surrogate pair.",
                    "No program can be given such a text.",
                )
        decoded[key] = value
    return decoded


def _int(text: str) -> int:
    # The length is checked first, since int() takes long to refuse very long texts.
    if len(text) > 20 or not _INT_LOW <= int(text) <= _INT_HIGH:
        raise CotenantError(f"the number {quoted(text)[1:-1]} needs more than 64 bits.", "Write it as a string.")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise CotenantError(f"the number {quoted(text)[1:-1]} is too large.", "Write it as a string.")
    return value


def _constant(text: str) -> NoReturn:
    raise CotenantError(f"{text} is no JSON number.", f'Write "{text}" as a string if the benchmark wants it.')


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_int, parse_float=_float, parse_constant=_constant)
