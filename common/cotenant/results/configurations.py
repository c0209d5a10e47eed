"""Two configurations under one name: left in a directory by an earlier run, or merged by hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields

from cotenant.results.launches import Work, work_of
from cotenant.results.row import Row


def newest_work(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """Return the rows without rates of other work than a job's newest on its host, and a sentence on each such job.

    For readers that average all records of one name: two configurations under one name have no average.
    """
    works: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        # What has no number decides nothing: an INVALID record would else drive out the good ones.
        if row.ours and row.completed and not row.invalid and row.rate is not None:
            works[row.hostname, row.name].append(row)
    current = {job: work_of(max(members, key=lambda row: row.start_time)) for job, members in works.items()}
    older = [row for members in works.values() for row in members if work_of(row) != current[row.hostname, row.name]]
    left_out: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in older:
        left_out[row.hostname, row.name].append(row)
    said = [
        f"{name}: {len(members)} records are of other work than the newest "
        f"({_differing(current[host, name], members)}); they do not count."
        for (host, name), members in left_out.items()
    ]
    dropped = {id(row) for row in older}
    return [row for row in rows if id(row) not in dropped], said


def _differing(work: Work, rows: Sequence[Row]) -> str:
    """Name what the rows' works differ in from `work`, with both values where a person can read them."""
    told = []
    for one in fields(Work):
        mine, others = getattr(work, one.name), {str(getattr(work_of(row), one.name)) for row in rows}
        if others - {str(mine)}:
            values = "" if one.name == "benchmark" else f" {', '.join(sorted(others - {str(mine)}))}, not {mine}"
            told.append(f"{one.name.replace('_', ' ')}{values}")
    return "; ".join(told)
