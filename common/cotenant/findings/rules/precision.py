"""What was asked is what ran: the dtype of the heaviest products against the precision asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

PLAIN = "fp32"


def check(record: Record) -> Finding | None:
    asked, seen = record.arguments.get("precision"), record.observed.get("dtype")
    if seen is None and isinstance(asked, str) and asked != PLAIN and record.statistics is not None:
        return Finding(
            "precision",
            "warning",
            f"Asked for {asked}, but no product was seen in a step: nothing shows that it ran so.",
            "Let the benchmark tell `observed.dtype`, or leave --precision out where it has no products.",
        )
    if asked is None or seen is None or seen == ("fp16" if asked == "half" else asked):
        return None
    return Finding(
        "precision",
        "error",
        f"Asked for {asked}, but the heaviest products of a step ran in {seen}.",
        "Check that the models are placed by run.place and that no step casts its input.",
    )
