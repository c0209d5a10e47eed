"""A task that waits for its loader: its rate says more about the input than about the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding
from cotenant.findings.rules.kept import kept, waiting_share

if TYPE_CHECKING:
    from cotenant.results.record import Record

MOST = 0.2


def check(record: Record) -> Finding | None:
    share = waiting_share(kept(record))
    # Input that is made in the task's own process is work of the task.
    if share <= MOST or not record.observed.get("workers"):
        return None
    return Finding(
        "data_bound",
        "info",
        f"The task waited for its input for {100 * share:.0f} % of its time.",
        "More --workers, a faster disk or a warm page cache would make it faster; a faster device would not.",
    )
