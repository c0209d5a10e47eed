"""A budget of time gives a launch less work than was asked for, and cannot always be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

LATE = 1.1


def check(record: Record) -> Finding | None:
    budget_s, asked, given = record.isolation.policies.get("budget_s"), record.asked, record.given
    if not isinstance(budget_s, float) or asked is None or given is None:
        return None
    if not record.completed or not record.observations:
        return None
    took_s, made = (record.observations[-1].end_ns - record.observations[0].start_ns) / 1e9, len(record.observations)
    cut = "nothing"
    if given != asked:
        cut = (
            f"{asked.repeat} observations of {asked.number} batches to {given.repeat} of {given.number}: "
            f"{given.batches} of {asked.batches} batches"
        )
    if took_s > LATE * budget_s:
        what = "One batch alone" if given.batches == 1 else "They"
        sentence = f"A budget of {budget_s:g} s cut {cut}. {what} took {took_s:.1f} s."
        if made < given.repeat:
            sentence = (
                f"A budget of {budget_s:g} s cut {cut}. They were ended after {made} observations and {took_s:.1f} s."
            )
        return Finding("budget", "warning", sentence, "Give a larger --budget, or a smaller batch.")
    if given == asked:
        return None
    return Finding("budget", "info", f"A budget of {budget_s:g} s cut {cut}.")
