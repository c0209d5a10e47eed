"""Meters and counters of the slice that this host does not have: what they would have said is not known."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    isolation = record.isolation
    enabled_by = {one: isolation.enabled_by[one] for one in isolation.uncounted if one in isolation.enabled_by}
    enabled_by |= record.meters.get("absent") or {}
    names = sorted({*enabled_by, *isolation.uncounted})
    if not record.completed or not names:
        return None
    alike: dict[str, list[str]] = defaultdict(list)
    for name, how in sorted(enabled_by.items()):
        alike[how].append(name)
    needed = "; ".join(f"{how} ({', '.join(enabled)})" for how, enabled in alike.items())
    return Finding(
        "meters_absent",
        "info",
        f"Not measured in this launch: {', '.join(names)}.",
        f"They would need {needed}." if needed else "",
    )
