"""The observations of a record as rows of their own, kept or not."""

from __future__ import annotations

from typing import Any

from cotenant.results.columns import OBSERVATIONS
from cotenant.results.detail import part_of
from cotenant.results.record import MOST, Observed, portable
from cotenant.results.row import row_of, whole_of

Values = tuple[Any, ...]


def observations_of(fields: Any, path: str) -> list[Values]:
    """Return the values of OBSERVATION_COLUMNS of each observation. Raises ForeignError where it is no record."""
    row = row_of(fields, path)
    place = (row.suite, row.name, row.run_id, row.vcd, row.tenant, row.solo, row.hostname, row.start_time)
    skip = whole_of(fields.get("skip")) or 0
    observed = part_of(fields.get("observations"), list[Observed]) or []
    return [
        tuple(map(portable, (OBSERVATIONS, *place, number, number >= skip, *_numbers(one), row.path)))
        for number, one in enumerate(observed)
    ]


def _numbers(one: Observed) -> Values:
    times = (one.start_ns, one.end_ns)
    rate = one.items * 1e9 / (one.end_ns - one.start_ns) if one.possible and one.items is not None else None
    numbers = (*times, one.items, rate, one.data_wait_ns, one.event_ns)
    return tuple(None if number is None or not -MOST <= number < MOST else number for number in numbers)
