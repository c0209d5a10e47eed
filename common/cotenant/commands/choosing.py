"""What flags such as `--job` and `--jobs` choose: names as they stand in records."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from cotenant.commands.output import warn
from cotenant.errors import CotenantError, did_you_mean
from cotenant.launch.environment import SOURCE_ROOT
from cotenant.suite.cells import expand
from cotenant.suite.jobfile import load, resolve_path
from cotenant.text import printable


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


def expected_jobs(file: str, targets: Collection[str], who: str) -> dict[str, float]:
    """Return the weights of a job file's jobs, by the names of their records: those that a score expects.

    Warns, as `who`, of those that have no target.

    A job of several cells is as many, which share its weight, unless there is a target for all of it, as for `scaling`.
    Raises CotenantError for a file that is no job file.
    """
    weights: dict[str, float] = {}
    for job in load(resolve_path(file, [Path.cwd(), SOURCE_ROOT.parent])).jobs:
        names = [job.stem] if job.stem in targets else [cell.label for cell in expand(job)]
        weights |= dict.fromkeys(names, job.weight / len(names))
    if without := [name for name in weights if name not in targets]:
        warn(f"no target for {', '.join(without)}.", who)
    return weights
