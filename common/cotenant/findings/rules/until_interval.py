"""Observations that end when an interval is narrow enough: such an interval covers less than it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding, Severity

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    share, given = record.isolation.policies.get("until_interval"), record.given
    if not isinstance(share, float) or given is None or not record.completed or not record.observations:
        return None
    asked, made = f"--until-interval {100 * share:g}%", len(record.observations)
    early = not record.rank_observations and made < given.repeat
    if record.rank_observations:
        sentence = f"{asked} has no effect here: ranks that stopped at different times would hang."
    elif not early:
        sentence = f"{asked} did not end its observations before the last of {made}."
    else:
        by = f"{asked} or --budget" if "budget_s" in record.isolation.policies else asked
        sentence = f"{by} ended them after {made} of {given.repeat}: such an interval covers less than it says."
    severity: Severity = "warning" if early else "info"
    remedy = "Run without it where an interval is to be published." if early else ""
    return Finding("until_interval", severity, sentence, remedy)
