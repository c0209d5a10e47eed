"""The variables that a job's text may name, and their expansion. No shell takes part."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from cotenant.errors import CotenantError, did_you_mean
from cotenant.text import quoted

VARIABLES: tuple[str, ...] = (
    "JOB_RUNNER",
    "JOB_FILE",
    "SUITE_NAME",
    "BENCH_NAME",
    "RUN_ID",
    "JOB_ID",
    "DEVICE_TOTAL",
    "CPU_TOTAL",
    "CPU_COUNT",
    "RAM_TOTAL",
    "RAM_CONSTRAINT",
    "USE_CUDA",
    "BASE",
    "DATA_DIRECTORY",
    "OUTPUT_DIRECTORY",
    "TEMP_DIRECTORY",
    "MASTER_ADDR",
    "MASTER_PORT",
)

# After a dollar: another one, a name, a name in braces, or nothing that means anything.
_DOLLAR = re.compile(r"\$(?:(?P<dollar>\$)|(?P<name>[A-Za-z_]\w*)|\{(?P<braced>[^}]*)\}|)", re.ASCII)


def names_in(text: str) -> set[str]:
    """Return the names that `text` refers to, known or not.

    Raises CotenantError for a dollar that opens no name.
    """
    return {name for found in _DOLLAR.finditer(text) if (name := _name(found)) is not None}


def check_variables(text: str) -> None:
    """Raise CotenantError where `text` could not be expanded: a stray dollar, or a name not in VARIABLES."""
    for name in sorted(names_in(text)):
        _check_known(name, text, VARIABLES)


def expand_variables(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$NAME` and `${NAME}` by their values, once, and `$$` by a dollar.

    Raises CotenantError for a name that `variables` lacks, or a dollar that opens no name.
    """

    def value(found: re.Match[str]) -> str:
        name = _name(found)
        if name is None:
            return "$"
        _check_known(name, text, variables)
        return variables[name]

    return _DOLLAR.sub(value, text)


def _name(found: re.Match[str]) -> str | None:
    """Return the name that a match refers to; None for `$$`."""
    if found["dollar"]:
        return None
    name = found["name"] if found["braced"] is None else found["braced"]
    if name:
        return name
    rest = found.string[found.start() :]
    if rest.startswith("${}"):
        wrong = "a '${}' without a name"
    elif rest.startswith("${"):
        wrong = "a '${' without its '}'"
    else:
        wrong = "a '$' without a name after it"
    raise CotenantError(f"{wrong} in {quoted(found.string)}.", "Write $$ for a dollar sign.")


def _check_known(name: str, text: str, known: Collection[str]) -> None:
    if name not in known:
        raise CotenantError(
            f"unknown variable {quoted(name)} in {quoted(text)}.",
            f"{did_you_mean(name, known)} Known are {', '.join(known)}.".strip(),
        )
