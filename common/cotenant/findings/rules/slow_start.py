"""Warm-up counted in: the first kept observations are slower than all that follow."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from cotenant.finding import Finding
from cotenant.findings.rules.drift import is_drift
from cotenant.findings.rules.kept import seconds_per_item

if TYPE_CHECKING:
    from cotenant.results.record import Record

LEAST_SLOWER = 1.02


def check(record: Record) -> Finding | None:
    from cotenant.stats.steadiness import drift, slow_start

    times, _ = seconds_per_item(record)
    first = slow_start(times)
    slower = median(times[:first]) / median(times[first:]) if first else 1.0
    # Where the rest goes on falling it is a drift, and that is another rule's to say.
    if slower < LEAST_SLOWER or is_drift(drift(times[first:])):
        return None
    return Finding(
        "slow_start",
        "warning",
        f"The first {first} of {len(times)} kept observations took {100 * (slower - 1):.0f} % longer than the rest: "
        "warm-up is counted in.",
        f"Skip them: --skip {record.skip + first}.",
    )
