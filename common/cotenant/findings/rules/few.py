"""Too few observations for an interval of their median; of a single one nobody knows whether another would agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding, Severity

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    if record.statistics is None or record.statistics.interval is not None:
        return None
    severity: Severity = "error" if record.statistics.n == 1 else "warning"
    cut = record.asked is not None and len(record.observations) < record.asked.repeat
    return Finding(
        "few_observations",
        severity,
        f"Kept observations: {record.statistics.n}. That is too few for an interval of their median.",
        f"Use a larger {'--budget' if cut else '--repeat'}: six kept observations are the least.",
    )
