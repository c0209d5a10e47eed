"""Reads and checks the fields of one entry of a job file; the caller adds the place to errors."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from cotenant.errors import CotenantError, did_you_mean
from cotenant.removed import removed
from cotenant.suite.decode import at, kind
from cotenant.suite.variables import VARIABLES, Value, check_variables, words
from cotenant.text import quoted

Group = Literal["student", "all"]
Args = tuple[tuple[str, tuple[Value, ...]], ...]

PRECISION = "--precision"
KEYS = ("name", "cmd", "args", "cgroup", "weight", "timeout", "env", "tuned")
_NAME_BYTES = 100  # file names have at most 255 bytes, and more than the stem in them
_CELLS = 10_000  # more would run for weeks: a typing error that would fill the memory
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def check_keys(
    entry: Mapping[str, object], keys: Sequence[str], needed: Sequence[str], unknown: str, whose: str
) -> None:
    """Raise CotenantError for a key that is none of `keys`, and for a missing one of `needed`.

    The sentence on an unknown key begins with `unknown`, and the remedy names the keys as the keys of `whose`.
    """
    for key in entry:
        if key not in keys:
            if sentence := removed(key, "--jobs"):
                raise CotenantError(f"the key {quoted(key)} was removed.", sentence)
            remedy = f"{did_you_mean(key, keys)} {whose} keys are {', '.join(keys)}.".strip()
            raise CotenantError(f"{unknown} key {quoted(key)}.", remedy)
    for key in needed:
        if key not in entry:
            raise CotenantError(f"the key '{key}' is missing.", f'Add "{key}": "...".')


def name_of(entry: Mapping[str, object]) -> str:
    """Return the name, which has to be valid in a file name."""
    return checked_name(_text(entry, "name"))


def checked_name(name: str) -> str:
    """Return the name unchanged. Raises CotenantError if it is not valid in a file name."""
    if "/" in name or "\\" in name:
        wrong = "holds a slash or a backslash"
    elif not name.isprintable():
        wrong = "holds a character that cannot be printed"
    elif name.startswith("."):
        wrong = "starts with a dot"
    elif len(name.encode()) > _NAME_BYTES:
        wrong = f"is longer than {_NAME_BYTES} bytes"
    else:
        return name
    raise CotenantError(f"the name {quoted(name)} {wrong}.", "It becomes part of file names: choose another.")


def cmd_of(entry: Mapping[str, object]) -> str:
    """Return the command, variables not yet expanded."""
    cmd = _text(entry, "cmd")
    with at("'cmd'"):
        check_variables(cmd)
    return cmd


def args_of(entry: Mapping[str, object]) -> Args:
    """Return every argument with its values, one or more."""
    args: list[tuple[str, tuple[Value, ...]]] = []
    for key, value in _object(entry, "args").items():
        with at(quoted(key)):
            check_variables(key)
            args.append((key, _values(key, value)))
    if math.prod(len(values) for _, values in args) > _CELLS:
        raise CotenantError(f"its lists multiply to more than {_CELLS} cells.", "Shorten them, or use two jobs.")
    return tuple(args)


def group_of(entry: Mapping[str, object]) -> Group:
    """Return `student` or `all`; by default `all`, as in the original suite."""
    group = entry.get("cgroup", "all")
    if group == "student":
        return "student"
    if group == "all":
        return "all"
    close = did_you_mean(group, ("student", "all")) if isinstance(group, str) else ""
    raise CotenantError(f"'cgroup' is {kind(group)}.", f"{close} It is 'student' or 'all'.".strip())


def positive_of(entry: Mapping[str, object], key: str) -> float | None:
    """Return a positive number, or None if the key is missing."""
    if key not in entry:
        return None
    value = entry[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise CotenantError(f"'{key}' is {kind(value)}.", "It is a number above 0, or left out.")
    return float(value)


def env_of(entry: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return the environment that the job adds, variables not yet expanded."""
    env: list[tuple[str, str]] = []
    for name, value in _object(entry, "env").items():
        with at(f"'env' {quoted(name)}"):
            if not _ENV_NAME.fullmatch(name):
                raise CotenantError("this is no variable's name.", "Use letters, digits and _, no digit first.")
            if name in VARIABLES:
                raise CotenantError("the runner sets this variable itself.", "Leave it out.")
            if name.startswith(("PYTHON", "LD_")):
                raise CotenantError(
                    "this variable can run other code before the benchmark, so its numbers could not be trusted.",
                    "Leave it out: what a benchmark needs lies beside it, or is installed.",
                )
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise CotenantError(f"the value is {kind(value)}.", "Write a string or a number.")
            text = value if isinstance(value, str) else repr(value)
            check_variables(text)
            env.append((name, text))
    return tuple(env)


def _values(key: str, value: object) -> tuple[Value, ...]:
    if not key:
        raise CotenantError("an argument's name is empty.", 'Write a flag, or a positional with the value "".')
    if not key.startswith("-") and value != "":
        raise CotenantError(
            f'an argument without a dash is a positional, and its value is "", not {kind(value)}.',
            f"{quoted('--' + key)} would be a flag.",
        )
    if value == []:
        raise CotenantError("the list of values is empty.", "Write one value or more, or leave the flag out.")
    return tuple(_value(item) for item in (value if isinstance(value, list) else [value]))


def _value(value: object) -> Value:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        remedy = "Write numbers and strings only."
        if value is None or isinstance(value, bool):
            remedy = 'Write "" for a bare flag.' if value else "Leave the flag out."
        raise CotenantError(f"a value is {kind(value)}.", remedy)
    for word in words(value):
        check_variables(word)
    return value


def _text(entry: Mapping[str, object], key: str) -> str:
    value = entry[key]
    if not isinstance(value, str):
        raise CotenantError(f"'{key}' is {kind(value)}.", "It is a string.")
    if not value.strip():
        raise CotenantError(f"'{key}' is empty.", "Write at least one character.")
    return value


def _object(entry: Mapping[str, object], key: str) -> dict[str, object]:
    value = entry.get(key, {})
    if not isinstance(value, dict):
        raise CotenantError(f"'{key}' is {kind(value)}.", 'It is an object: {"...": "..."}.')
    return value
