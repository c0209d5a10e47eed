"""Processor time that the host below a virtual machine gave to others during a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

MOST = 0.01


def check(record: Record) -> Finding | None:
    host = record.meters.get("host")
    if host is None or host["stolen_share"] <= MOST:
        return None
    return Finding(
        "stolen",
        "warning",
        f"During this launch the host below took away {100 * host['stolen_share']:.1f} % of all processor time.",
        "Use an instance with dedicated processors, or repeat at another hour.",
    )
