"""Kept observations whose input was loaded before GO: they are as fast as a queue is emptied, not as it is filled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cotenant.finding import Finding, Severity
from cotenant.findings.rules.kept import kept, waiting_share

if TYPE_CHECKING:
    from cotenant.results.record import Record

LITTLE = 0.05
"""Where later steps wait for less than this of their time, what was loaded ahead made none much shorter."""


def check(record: Record) -> Finding | None:
    ahead, number = record.observed.get("loaded_ahead"), record.arguments.get("number")
    rows = kept(record)
    if not isinstance(ahead, int) or not isinstance(number, int) or number < 1:
        return None
    fed = min(len(rows), math.ceil(max(0, ahead - record.skip * number) / number))
    later = rows[fed:]
    if not fed or (later and waiting_share(later) < LITTLE):
        return None
    severity: Severity = "error" if later and 2 * fed >= len(rows) else "warning"
    return Finding(
        "loaded_ahead",
        severity,
        f"The first {fed} of {len(rows)} kept observations had input that was loaded before GO: up to {ahead} batches.",
        f"Skip them: --skip {math.ceil(ahead / number)}, with a --repeat of three times that.",
    )
