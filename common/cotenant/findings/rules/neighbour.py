"""A tenant whose neighbour was lost after GO was measured on an emptying machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    if record.comparable or not record.completed:
        return None
    return Finding(
        "neighbour_lost",
        "error",
        "Another tenant of this launch did not finish, so this rate was not measured beside all of them.",
        "Mend the failed tenant (its record names the reason) and run the job again.",
    )
