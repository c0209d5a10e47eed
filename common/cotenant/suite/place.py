"""Where in a job file something is wrong, and how it is quoted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cotenant.errors import CotenantError

_SHOWN = 80


@contextmanager
def at(place: str) -> Iterator[None]:
    """Put `place: ` before the sentence of every CotenantError raised inside."""
    try:
        yield
    except CotenantError as error:
        raise CotenantError(f"{place}: {error.sentence}", error.remedy) from None


def shown(text: str) -> str:
    """Quote `text` on one line, shortened where it is long."""
    quoted = repr(text)
    return quoted if len(quoted) <= _SHOWN else f"{quoted[:_SHOWN]}...'"


def kind(value: object) -> str:
    """Name a decoded JSON value as its author would: `true`, `null`, `a list`, `the number 3` ..."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the string {shown(value)}"
    if isinstance(value, int | float):
        return f"the number {value!r}"
    return "a list" if isinstance(value, list) else "an object"
