"""What the newest launch of each cell took: how long a suite will take, before it is run again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from cotenant.results.decoded import Decoded, list_of, mapping_of, part_of
from cotenant.results.record import Whole


@dataclass(frozen=True, slots=True)
class LastLaunch:
    """A launch that completed: its `seconds` from its begin to its last tenant's end, and what its optimizers step.

    `parameters` is None where that was not counted: nothing is trained, or the program is no benchmark of ours.
    """

    start: str
    seconds: float
    parameters: int | None


def last_launches(records: Iterable[Decoded], suite: str) -> dict[str, LastLaunch]:
    """Return the newest launch of each cell of a suite, by its label, of which all records are of tenants together."""
    newest: dict[str, LastLaunch] = {}
    for record in records:
        if record.suite != suite or not record.completed or record.at("solo") is True:
            continue
        try:
            lasted = datetime.fromisoformat(record.end_time) - datetime.fromisoformat(record.start_time)
        except (ValueError, TypeError):  # TypeError: one has a time zone, the other has none
            continue
        launch = LastLaunch(record.start_time, lasted.total_seconds(), _parameters(record))
        before = newest.get(record.name, launch)
        newest[record.name] = max(before, launch, key=lambda each: (each.start, each.seconds))
    return newest


def _parameters(record: Decoded) -> int | None:
    counts = [
        part_of(mapping_of(optimizer).get("parameters"), Whole)
        for optimizer in list_of(record.at("observed", "optimizers"))
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
