"""The words of a command line: how a value becomes words, and which words are flags."""

from __future__ import annotations

import shlex

from cotenant.errors import CotenantError
from cotenant.text import quoted

Value = str | int | float


def words(value: Value) -> list[str]:
    """Return the words that follow a flag of this value: none for `""`, a string split as a shell would.

    Raises CotenantError for a string with an open quote or a dangling backslash.
    """
    if not isinstance(value, str):
        return [repr(value)]
    try:
        return shlex.split(value)
    except ValueError as error:
        raise CotenantError(
            f"{quoted(value)} cannot be split as a shell would: {str(error).lower()}.",
            "Close the quote, or escape it.",
        ) from None


def is_flag(word: str) -> bool:
    """Tell whether this is a flag: it starts with a dash and is neither a lone `-` nor a negative number."""
    if not word.startswith("-") or word == "-":
        return False
    try:
        float(word)
    except ValueError:
        return True
    return False


def flag_name(word: str) -> str:
    """Return the flag without a value attached to it: `--lr` of `--lr=0.1`."""
    return word.partition("=")[0]
