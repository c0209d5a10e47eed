"""The runner itself must not disturb what it measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

MOST = 0.01


def check(record: Record) -> Finding | None:
    share = record.meters.get("runner_processor_share")
    if share is None or share < MOST:
        return None
    return Finding(
        "runner_share",
        "warning",
        f"The runner used {100 * share:.1f} % of a processor while tenants were timed.",
        "Make observations longer (--number): each one sends the runner a message.",
    )
