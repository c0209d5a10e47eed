"""The device's own clock against the host's over the same observation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

MOST = 0.01


def check(record: Record) -> Finding | None:
    if record.statistics is None:
        return None
    kept = [one for one in record.observations[record.skip :] if one.event_ns is not None]
    host_ns = sum(one.end_ns - one.start_ns for one in kept)
    event_ns = sum(one.event_ns or 0 for one in kept)
    if not host_ns or abs(event_ns - host_ns) / host_ns <= MOST:
        return None
    return Finding(
        "clocks",
        "warning",
        f"Device events say {100 * (event_ns / host_ns - 1):+.1f} % against the host clock.",
        "Make observations longer (--number): launch and synchronisation cost weigh in.",
    )
