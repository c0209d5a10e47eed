"""Several devices worth more than as many single ones, or less than half: one of the rates is not what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

LEAST, MOST = 0.5, 1.04
"""More than the whole is impossible; two launches that differ by 1 % each pass 1.04 in three of a thousand."""


def check(record: Record) -> Finding | None:
    met = record.meters.get("scaling")
    return None if met is None else of_efficiency(met["devices"], met["efficiency"])


def of_efficiency(devices: int, efficiency: float) -> Finding | None:
    """Return what there is to say of an efficiency over so many devices, of one launch or of many."""
    if LEAST <= efficiency <= MOST:
        return None
    if efficiency < LEAST:
        remedy = "See that every rank has a device and processors of its own, and how the devices are linked."
    else:
        remedy = "Run one device again, with nothing else on the machine, and compare the items both have counted."
    return Finding(
        "scaling",
        "warning",
        f"{devices} devices ran {devices * efficiency:.2f} times as fast as one: an efficiency of {efficiency:.2f}.",
        remedy,
    )
