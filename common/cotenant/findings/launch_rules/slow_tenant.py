"""A tenant that got clearly less than its neighbours in the same launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

LEAST = 0.9


def check(launch: Sequence[Record], earlier: Sequence[Record]) -> dict[int, Finding]:
    numbers = [record.statistics for record in launch if record.statistics is not None and not record.invalid]
    if len(numbers) < len(launch) or len(launch) < 2:
        return {}
    slow, fast = (pick(range(len(launch)), key=lambda place: numbers[place].median) for pick in (min, max))
    worst, best = numbers[slow], numbers[fast]
    # Both intervals have to be on their side: of few or scattered observations medians differ by chance.
    if worst.interval is None or best.interval is None or worst.interval[1] >= LEAST * best.interval[0]:
        return {}
    ratio = worst.median / best.median
    finding = Finding(
        "slow_tenant",
        "warning",
        f"Tenant {launch[slow].tenant} ran at {ratio:.3f} times the rate of tenant {launch[fast].tenant}.",
        "Compare their slices, clocks and counters in the records: cotenant plan shows who is given what.",
    )
    return {slow: finding}
