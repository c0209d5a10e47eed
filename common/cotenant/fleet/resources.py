"""Maps jobs to the resource that each needs most: jobs of one resource, slow together, name it."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from cotenant.errors import CotenantError
from cotenant.files import content_of


def read_resources(path: Path) -> dict[str, str]:
    """Return resources by patterns of jobs' names, in the order of a CSV file with the columns `job,resource`.

    Raises CotenantError for a file that is none.
    """
    try:
        rows = list(csv.DictReader(content_of(path, follow=True).decode().splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CotenantError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if not rows or any(not row.get("job") or not row.get("resource") for row in rows):
        raise CotenantError(f"{path} has no lines of a job and its resource.", "Its first line is `job,resource`.")
    return {row["job"]: row["resource"] for row in rows}


def resource_of(job: str, table: Mapping[str, str]) -> str:
    """Return the resource of the first pattern that a job's name, with its cell, matches; "" where none does."""
    return next((resource for pattern, resource in table.items() if fnmatchcase(job, pattern)), "")


def witnesses(jobs: Iterable[str], table: Mapping[str, str], each: int) -> list[str]:
    """Return of these jobs the first few of each resource, of different patterns as far as there are; all without one.

    So many can name their resource: the shortest suite that still tells which one is slow.
    """
    names = [*jobs]
    patterns = [next((pattern for pattern in table if fnmatchcase(job, pattern)), "") for job in names]
    chosen, counts = set[str](), Counter[str]()
    # The first jobs of their patterns go before all others. Two jobs may have one name.
    for at in sorted(range(len(names)), key=lambda at: at != patterns.index(patterns[at])):
        resource = table.get(patterns[at], "")
        if not resource or counts[resource] < each:
            chosen.add(names[at])
            counts[resource] += 1
    return [job for job in names if job in chosen]
