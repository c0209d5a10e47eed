"""Records that were copied: a launch under another repetition's number is no second launch."""

from __future__ import annotations

from collections.abc import Iterable

from cotenant.results.row import Row


def without_copies(rows: Iterable[Row]) -> tuple[list[Row], list[str]]:
    """Return the rows without copies of a launch under another repetition's number, and a sentence on each of these.

    No two launches of a host begin at the same microsecond: equal numbers would look like many that agree. Only what
    has a rate can be such a copy: a failure is never left out.
    """
    given = list(rows)
    first: dict[tuple[str, ...], int] = {}
    for row in given:
        if _has_rate(row):
            first[_moment(row)] = min(first.get(_moment(row), row.run_id), row.run_id)
    copies = [row for row in given if _has_rate(row) and first[_moment(row)] != row.run_id]
    said = {
        f"{row.name}, repetition {row.run_id}: it began at the same moment as repetition {first[_moment(row)]}, "
        "and is a copy of it; it does not count."
        for row in copies
    }
    dropped = set(map(id, copies))
    return [row for row in given if id(row) not in dropped], sorted(said)


def _has_rate(row: Row) -> bool:
    return row.ours and bool(row.start_time) and row.rate is not None


def _moment(row: Row) -> tuple[str, ...]:
    return row.suite, row.hostname, row.name, row.start_time
