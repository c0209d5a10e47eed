"""Swapping during a launch: somebody's memory was read from a disk while tenants were timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

MOST_BYTES = 1 << 20


def check(record: Record) -> Finding | None:
    host = record.meters.get("host")
    if host is None or host["swapped_in_bytes"] + host["swapped_out_bytes"] <= MOST_BYTES:
        return None
    into, out = host["swapped_in_bytes"] / 2**20, host["swapped_out_bytes"] / 2**20
    return Finding(
        "swapped",
        "warning",
        f"During this launch the host swapped {into:.0f} MiB in and {out:.0f} MiB out.",
        "Switch swap off (swapoff -a), or keep more memory back with --reserve.",
    )
