"""Conceals tokens, keys, secrets and passwords in records, journals, logs and previews.

A flag, argument or variable is confidential by its name; if the name is ambiguous, its value decides. A value that has
to be compared is kept as a hash by a key that is made for each run of a suite and stored nowhere: equal values have
equal hashes, but none can be looked up.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

HIDDEN = "(hidden)"
HASHED = "hidden:"
_SECRET = re.compile(
    r"secret|passw|passphrase|(^|[^a-z])pass([^a-z]|$)"
    r"|(^-*token|(^|[^a-z])(hf|api)[_-]?(token|key)|(hub|auth|access|private)[_-]?(token|key))([^a-z]|$)",
    re.IGNORECASE,
)
_AMBIGUOUS = re.compile(r"(token|key)([^a-z]|$)", re.IGNORECASE)
_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[\w.~+/=:-]{16,}")
_NAMED = re.compile(r"(?<![\w-])([\w-]++)(=|\s+)")
_SPACE = re.compile(r"\s")
_VALUE = re.compile(r"(?!--)(?:'[^']*'|\"[^\"]*\"|(?:\\.|[^\s'\"\\])+)")

Conceal = Callable[[str], str]
Hides = Callable[[str, str], bool]
"""Returns whether a flag, an argument or a variable of this name and value is concealed."""


def is_secret(name: str, value: str = "") -> bool:
    """Return whether the name alone is a secret's: `--hf-token`, `API_KEY`, `db_password`."""
    return _SECRET.search(name) is not None


def is_confidential(name: str, value: str) -> bool:
    """Return whether the name is a secret's, or may be and the value looks random: `--wandb-key 0123456789abcdef`.

    Plurals have no secrets: `--tokens 512` is a count.
    """
    may_be = _AMBIGUOUS.search(name) is not None and _RANDOM.fullmatch(value.strip("'\"")) is not None
    return may_be or is_secret(name)


def hidden(value: str) -> str:
    """Return the mask shown for a value that need not be compared."""
    return HIDDEN


def by_new_key() -> Conceal:
    """Return a function that makes a hash of a value, by a key that is not stored."""
    key = secrets.token_bytes(32)
    return lambda value: f"{HASHED}{hmac.new(key, value.encode(errors='surrogateescape'), hashlib.sha256).hexdigest()}"


def arguments_without(
    arguments: Mapping[str, Any], conceal: Conceal = hidden, hides: Hides = is_confidential
) -> dict[str, Any]:
    """Return arguments, or variables, with every confidential text concealed; numbers are no secrets, and stay."""
    return {
        name: conceal(value) if isinstance(value, str) and value and hides(name, value) else value
        for name, value in arguments.items()
    }


def words_without(words: Sequence[str], conceal: Conceal = hidden, hides: Hides = is_confidential) -> list[str]:
    """Return a command with every confidential value concealed: `--token X`, `--token=X`, `TOKEN=X`, even if a shell
    has several of these as one word."""
    shown: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        before = shown[-1] if shown else ""
        if before.startswith("-") and "=" not in before and not word.startswith("--") and hides(before, word):
            shown.append(conceal(word))
        # A flag begins no line of a shell: all behind it is its value.
        elif equals and value and hides(name, value) and not _SPACE.search(name if name.startswith("-") else word):
            shown.append(f"{name}={conceal(value)}")
        else:
            shown.append(_line_without(word, conceal, hides))
    return shown


def _line_without(line: str, conceal: Conceal, hides: Hides) -> str:
    shown, end = "", 0
    # The word after a name that is not confidential may be the next name: `export TOKEN=X`.
    for found in _NAMED.finditer(line):
        name, between = found.groups()
        if found.start() < end or not (name.startswith("-") or between == "="):
            continue
        if (value := _VALUE.match(line, found.end())) and hides(name, value[0]):
            shown += line[end : value.start()] + conceal(value[0])
            end = value.end()
    return shown + line[end:]
