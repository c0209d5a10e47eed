"""Another precision at the very same rate: then one of the two runs may have been the other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

NEARLY = 0.002


def check(launch: Sequence[Record], earlier: Sequence[Record]) -> dict[int, Finding]:
    found = {}
    for place, record in enumerate(launch):
        for other in earlier:
            if (finding := _compared(record, other)) is not None:
                found[place] = finding
    return found


def _compared(record: Record, other: Record) -> Finding | None:
    mine, before = record.arguments.get("precision"), other.arguments.get("precision")
    if mine is None or before is None or mine == before or record.statistics is None or other.statistics is None:
        return None
    ratio = record.statistics.median / other.statistics.median
    if abs(ratio - 1) > NEARLY or _work(record) != _work(other):
        return None
    return Finding(
        "no_speed_up",
        "warning",
        f"In {mine} it ran at {ratio:.4f} times the rate of {other.name} in {before}.",
        "See in both records which dtype was observed, and what the step spends its time on.",
    )


def _work(record: Record) -> str:
    """Return all that is equal in two records of one work, their precision aside."""
    from cotenant.results.identity import NOT_WORK

    arguments = {name: one for name, one in record.arguments.items() if name not in {*NOT_WORK, "precision"}}
    work = [record.suite, record.hostname, record.group, record.tenant, record.tenants, record.version, arguments]
    return json.dumps(work, sort_keys=True, default=str)
