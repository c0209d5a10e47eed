"""What several rules look at: the kept observations of a record that has numbers, none of one that has not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cotenant.results.record import Observed, Record


def kept(record: Record) -> list[Observed]:
    """Return the observations that the record's statistics are of."""
    return record.observations[record.skip :] if record.statistics is not None else []


def rates(record: Record) -> list[float]:
    """Return their items per second, in the order they were made."""
    return [1 / one for one in seconds_per_item(record)[0]]


def seconds_per_item(record: Record) -> tuple[list[float], list[float]]:
    """Return the seconds an item took in each of them, and how many of these it was waited for."""
    times, waits = [], []
    for one in kept(record):
        assert one.items  # there are no statistics of anything else
        times.append((one.end_ns - one.start_ns) / one.items / 1e9)
        waits.append(one.data_wait_ns / one.items / 1e9)
    return times, waits


def waiting_share(rows: Sequence[Observed]) -> float:
    """Return the share of their time in which observations waited for input; 0 where they took none."""
    total_ns = sum(one.end_ns - one.start_ns for one in rows)
    return sum(one.data_wait_ns for one in rows) / total_ns if total_ns else 0.0
