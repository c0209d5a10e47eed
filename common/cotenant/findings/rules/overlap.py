"""Observations outside the common load were not made beside all tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.findings.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

LEAST = 0.99


def check(record: Record) -> Finding | None:
    if record.rendezvous is None or record.rendezvous.overlap >= LEAST:
        return None
    return Finding(
        "overlap",
        "error",
        f"Only {record.rendezvous.overlap:.1%} of the observed time lies inside the load common to all tenants.",
        "Make observations longer (--number), or keep other work off the machine.",
    )
