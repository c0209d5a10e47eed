"""Observations that took far longer because their input came late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding
from cotenant.findings.rules.kept import seconds_per_item

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    from cotenant.stats.spikes import spikes

    times, waits = seconds_per_item(record)
    late = spikes(times, waits).late
    if not late:
        return None
    worst = max(times[index] for index in late) / sorted(times)[len(times) // 2]
    return Finding(
        "input_stall",
        "warning",
        f"In {len(late)} of {len(times)} kept observations the input came late: "
        f"the slowest took {worst:.2f} times the median time, most of it waiting for data.",
        "Use more --workers, a warm page cache (--cache warm) or a faster disk; see who else reads from it.",
    )
