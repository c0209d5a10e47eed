"""Time between observations that no clock has seen: work may have been moved there, and the neighbours had it easy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding
from cotenant.findings.rules.kept import kept

if TYPE_CHECKING:
    from cotenant.results.record import Record

LEAST = 0.75
"""A benchmark's harness takes about a millisecond between two observations."""


def check(record: Record) -> Finding | None:
    observations = kept(record)
    if len(observations) < 2:
        return None
    timed_ns = sum(one.end_ns - one.start_ns for one in observations)
    passed_ns = observations[-1].end_ns - observations[0].start_ns
    # By a program's own stamps none may have passed.
    if timed_ns >= LEAST * passed_ns:
        return None
    share = timed_ns / passed_ns
    return Finding(
        "untimed",
        "warning",
        f"Only {100 * share:.0f} % of the time from the first to the last kept observation lies inside observations.",
        "Make observations longer (--number), and do nothing between them that belongs to a step.",
    )
