"""A program that reported no observation, as one that never joined the rendezvous."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    if not record.completed or record.observations:
        return None
    return Finding(
        "unsynchronised",
        "warning",
        "This program reported no observation: it ran unsynchronised beside the others, and nothing was timed.",
        "See docs/writing-a-benchmark.md for the page of code that joins the rendezvous.",
    )
