"""Where in a job file something is wrong, and what stands there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cotenant.errors import CotenantError
from cotenant.text import quoted


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
