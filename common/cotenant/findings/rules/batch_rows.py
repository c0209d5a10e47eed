"""What was counted against what was asked for: `number` batches of `batch_size` rows in every observation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding
from cotenant.findings.rules.kept import kept

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    number, batch_size = record.arguments.get("number"), record.arguments.get("batch_size")
    if record.observed.get("item_is_row") is not True or not isinstance(number, int) or not isinstance(batch_size, int):
        return None
    asked = number * batch_size
    other = [one for one in kept(record) if one.items != asked]
    if not other:
        return None
    return Finding(
        "batch_rows",
        "error",
        f"{number} batches of {batch_size} rows are {asked}, and an observation counts {other[0].items:g} "
        f"({len(other)} of {len(kept(record))} are like this).",
        "Let every batch hold --batch-size rows, or define `items` where an item is something else.",
    )
