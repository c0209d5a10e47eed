"""What was asked is what ran: the dtype of the heaviest products against the precision asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.findings.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    asked, seen = record.arguments.get("precision"), record.observed.get("dtype")
    if asked is None or seen is None or seen == ("fp16" if asked == "half" else asked):
        return None
    return Finding(
        "precision",
        "error",
        f"Asked for {asked}, but the heaviest products of a step ran in {seen}.",
        "Check that the models are placed by run.place and that no step casts its input.",
    )
