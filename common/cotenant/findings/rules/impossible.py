"""Observations of which no rate can be made: a wrong number must not look like a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    if not record.completed or not record.observations or record.statistics is not None:
        return None
    total = len(record.observations)
    wrong = [index for index in range(record.skip, total) if not record.observations[index].possible]
    if not wrong:
        return Finding(
            "impossible_observation",
            "error",
            f"None of {total} observations is kept: the first {record.skip} are skipped.",
            "Give a --skip smaller than --repeat.",
        )
    seen = record.observations[wrong[0]]
    return Finding(
        "impossible_observation",
        "error",
        f"Observation {wrong[0]} counts {seen.items or 'no'} items in {seen.end_ns - seen.start_ns} ns; "
        f"{len(wrong)} of {total - record.skip} kept ones are like this, so there is no rate.",
        "Count items above zero, and stamp both ends of an observation by one clock that only goes forward.",
    )
