"""A benchmark that never joined the rendezvous."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.findings.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    if not record.completed or record.observations:
        return None
    return Finding(
        "unsynchronised",
        "warning",
        "This program never joined the rendezvous: it ran beside the others, but nothing was timed.",
        "See docs/writing-a-benchmark.md for the page of code that joins it.",
    )
