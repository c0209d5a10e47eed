"""What flags such as `--job` choose: names as they stand in records, by themselves or by globs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from cotenant.errors import CotenantError, did_you_mean
from cotenant.report.printable import printable


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern is this name, or a glob that fits it."""
    return name == pattern or fnmatchcase(name, pattern)


def chosen_names(names: Collection[str], patterns: Sequence[str], sentence: str) -> set[str]:
    """Return the names that any pattern matches.

    Raises CotenantError for a pattern that matches none: with `sentence`, in which `{}` is its place.
    """
    chosen: set[str] = set()
    for pattern in patterns:
        found = {name for name in names if matches(name, pattern)}
        if not found:
            hint = did_you_mean(pattern, names) or f"There are {', '.join(map(printable, names)) or 'none'}."
            raise CotenantError(sentence.format(pattern), hint)
        chosen |= found
    return chosen
