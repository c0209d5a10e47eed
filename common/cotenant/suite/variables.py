"""The words of a command line: made from values, told apart from flags, and expanded by variables.

No shell is involved.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from cotenant.errors import CotenantError, did_you_mean
from cotenant.text import quoted

Value = str | int | float

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
    "MEMORY_CLASS",
    "BATCH_SIZE",
)

# After a dollar: another one, a name, a name in braces, or anything else, which is an error.
_DOLLAR = re.compile(r"\$(?:(?P<dollar>\$)|(?P<name>[A-Za-z_]\w*)|\{(?P<braced>[^}]*)\}|)", re.ASCII)


def variables_in(text: str) -> set[str]:
    """Return the names that `text` refers to, known or not.

    Raises CotenantError for a dollar that opens no name.
    """
    return {name for dollar in _DOLLAR.finditer(text) if (name := _name(dollar)) is not None}


def check_variables(text: str) -> None:
    """Raise CotenantError if `text` cannot be expanded: for a stray dollar, or a name not in VARIABLES."""
    for name in sorted(variables_in(text)):
        _check_known(name, text, VARIABLES)


def expand_variables(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$NAME` and `${NAME}` by their values, once, and `$$` by a dollar.

    Raises CotenantError for a name that `variables` lacks, or a dollar that opens no name.
    """

    def value(dollar: re.Match[str]) -> str:
        name = _name(dollar)
        if name is None:
            return "$"
        _check_known(name, text, variables)
        return variables[name]

    return _DOLLAR.sub(value, text)


def _name(dollar: re.Match[str]) -> str | None:
    """Return the name that a match refers to; None for `$$`."""
    if dollar["dollar"]:
        return None
    name = dollar["name"] if dollar["braced"] is None else dollar["braced"]
    if name:
        return name
    rest = dollar.string[dollar.start() :]
    if rest.startswith("${}"):
        wrong = "a '${}' without a name"
    elif rest.startswith("${"):
        wrong = "a '${' without its '}'"
    else:
        wrong = "a '$' without a name after it"
    raise CotenantError(f"{wrong} in {quoted(dollar.string)}.", "Write $$ for a dollar sign.")


def _check_known(name: str, text: str, names: Collection[str]) -> None:
    if name not in names:
        raise CotenantError(
            f"unknown variable {quoted(name)} in {quoted(text)}.",
            f"{did_you_mean(name, names)} Known are {', '.join(names)}.".strip(),
        )


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
    """Return whether a word is a flag: it starts with a dash and is neither `-` nor a negative number."""
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


def value_behind(line: Sequence[str], *flags: str, usual: str = "") -> str:
    """Return the last value behind one of a flag's names, also after `=`; `usual` without one."""
    value = usual
    for word, following in pairwise((*line, "")):
        name, attached, rest = word.partition("=")
        if name in flags:
            value = rest if attached else following
    return value
