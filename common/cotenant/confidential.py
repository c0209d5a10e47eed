"""Conceals tokens, keys, secrets and passwords in records, journals, logs and previews.

A flag, argument or variable is confidential by its name. A value that has to be compared is kept as a hash by a key
that is made for each run of a suite and stored nowhere: equal values have equal hashes, but none can be looked up.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

HIDDEN = "(hidden)"
_NAME = re.compile(r"secret|passw|passphrase|(^|[^a-z])pass([^a-z]|$)|(token|key)([^a-z]|$)", re.IGNORECASE)
_IN_LINE = re.compile(r"(?P<name>[\w-]+)(?P<between>=|\s+)(?P<value>(?!--)(?:'[^']*'|\"[^\"]*\"|[^\s'\"]+))")

Conceal = Callable[[str], str]


def is_confidential(name: str) -> bool:
    """Whether a flag, an argument or a variable has a secret value: `--hf-token`, `API_KEY`, `db_password`.

    Plurals have none: `--tokens 512` is a count.
    """
    return _NAME.search(name) is not None


def hidden(value: str) -> str:
    """Return the mask shown for a value that need not be compared."""
    return HIDDEN


def by_new_key() -> Conceal:
    """Return a function that makes a hash of a value, by a key that is not stored."""
    key = secrets.token_bytes(32)
    return lambda value: f"hidden:{hmac.new(key, value.encode(errors='surrogateescape'), hashlib.sha256).hexdigest()}"


def arguments_without(arguments: Mapping[str, Any], conceal: Conceal = hidden) -> dict[str, Any]:
    """Return arguments, or variables, with every confidential text concealed; numbers are no secrets, and stay."""
    return {
        name: conceal(value) if isinstance(value, str) and value and is_confidential(name) else value
        for name, value in arguments.items()
    }


def words_without(words: Sequence[str], conceal: Conceal = hidden) -> list[str]:
    """Return a command with every confidential value concealed: `--token X`, `--token=X`, `TOKEN=X`, also where a shell
    has several of these as one word."""
    shown: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        before = shown[-1] if shown else ""
        if before.startswith("-") and "=" not in before and is_confidential(before) and not word.startswith("--"):
            shown.append(conceal(word))
        elif any(map(str.isspace, word)):
            shown.append(_IN_LINE.sub(lambda found: _without(found, conceal), word))
        elif equals and value and is_confidential(name):
            shown.append(f"{name}={conceal(value)}")
        else:
            shown.append(word)
    return shown


def _without(found: re.Match[str], conceal: Conceal) -> str:
    name, between, value = found["name"], found["between"], found["value"]
    is_flag = name.startswith("-") or between == "="
    return f"{name}{between}{conceal(value)}" if is_flag and is_confidential(name) else found[0]
