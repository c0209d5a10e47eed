"""Observations that stand far off the others: flagged, never removed. The median hardly feels a few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding, Severity
from cotenant.findings.rules.kept import seconds_per_item

if TYPE_CHECKING:
    from cotenant.results.record import Record

MANY = 0.1


def check(record: Record) -> Finding | None:
    from cotenant.stats.spikes import spikes

    times, waits = seconds_per_item(record)
    far = spikes(times, waits).others
    if not far:
        return None
    middle = sorted(times)[len(times) // 2]
    farthest = max((times[index] / middle for index in far), key=lambda one: abs(one - 1))
    severity: Severity = "warning" if len(far) > MANY * len(times) else "info"
    return Finding(
        "outliers",
        severity,
        f"{len(far)} of {len(times)} kept observations stand far off (modified z > 14.8): "
        f"the farthest took {farthest:.2f} times the median time.",
        "See what else ran at that moment: the observations' times are in the record.",
    )
