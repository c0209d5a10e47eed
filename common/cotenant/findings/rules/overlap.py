"""Observations outside the common load were not made beside all tenants."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

LEAST = 0.99


def check(record: Record) -> Finding | None:
    if record.rendezvous is None or record.rendezvous.overlap >= LEAST:
        return None
    # Downwards: 98.996 % must not read as the 99 % that would do.
    percent = math.floor(10_000 * record.rendezvous.overlap) / 100
    return Finding(
        "overlap",
        "error",
        f"Only {percent:.2f} % of the observed time lies inside the load common to all tenants.",
        "Make observations longer (--number), or keep other work off the machine.",
    )
