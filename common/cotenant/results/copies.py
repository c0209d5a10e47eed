"""Records that were copied: a launch under another repetition's number is no second launch."""

from __future__ import annotations

from collections.abc import Iterable

from cotenant.results.row import Row


def without_copies(rows: Iterable[Row]) -> tuple[list[Row], list[str]]:
    """Return the rows without copies of a launch under another repetition's number, and a sentence on each of these.

    No two launches of a host begin at the same microsecond: equal numbers would look like many that agree.
    """
    given = list(rows)
    first: dict[tuple[object, ...], int] = {}
    for row in given:
        if row.ours and row.start_time and row.rate is not None:
            known = first.setdefault(_moment(row), row.run_id)
            first[_moment(row)] = min(known, row.run_id)
    kept = [row for row in given if first.get(_moment(row), row.run_id) == row.run_id]
    said = {
        f"{row.name}, repetition {row.run_id}: it began at the same moment as repetition {first[_moment(row)]}, "
        "and is a copy of it; it does not count."
        for row in given
        if first.get(_moment(row), row.run_id) != row.run_id
    }
    return kept, sorted(said)


def _moment(row: Row) -> tuple[object, ...]:
    return row.suite, row.hostname, row.name, row.start_time
