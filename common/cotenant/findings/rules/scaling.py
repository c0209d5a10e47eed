"""Several devices that are worth more than as many single ones: then one of the two rates is not what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.findings.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

MOST = 1.05


def check(record: Record) -> Finding | None:
    met = record.meters.get("scaling")
    if met is None or met["efficiency"] <= MOST:
        return None
    devices, efficiency = met["devices"], met["efficiency"]
    return Finding(
        "scaling",
        "warning",
        f"{devices} devices ran {devices * efficiency:.2f} times as fast as one: an efficiency of {efficiency:.2f}.",
        "Run one device again, with nothing else on the machine, and compare the items each of both has counted.",
    )
