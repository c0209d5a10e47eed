"""A budget of time gives a launch less work than was asked for, and cannot always be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.findings.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

LATE = 1.1


def check(record: Record) -> Finding | None:
    budget_s, asked, given = record.isolation.policies.get("budget_s"), record.asked, record.given
    if not isinstance(budget_s, float) or asked is None or given is None or not record.completed:
        return None
    took_s = (record.observations[-1].end_ns - record.observations[0].start_ns) / 1e9
    cut = (
        f"{asked.repeat} observations of {asked.number} batches to {given.repeat} of {given.number}: "
        f"{given.batches} of {asked.batches} batches"
    )
    if took_s > LATE * budget_s:
        what = "One batch alone" if given.batches == 1 else "They"
        return Finding(
            "budget",
            "warning",
            f"A budget of {budget_s:g} s cut {cut if given != asked else 'nothing'}. {what} took {took_s:.1f} s.",
            "Give a larger --budget, or a smaller batch.",
        )
    if given == asked:
        return None
    return Finding("budget", "info", f"A budget of {budget_s:g} s cut {cut}.")
