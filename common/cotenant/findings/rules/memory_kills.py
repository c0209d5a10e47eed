"""Processes killed for memory outside of the slices: the host was full, and pressed everybody's page cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    host = record.meters.get("host")
    if host is None or not host["memory_kills_outside"]:
        return None
    kills = host["memory_kills_outside"]
    return Finding(
        "memory_kills",
        "warning",
        f"During this launch the kernel killed {kills} processes outside of the slices for memory.",
        "Keep more memory back with --reserve, and see the kernel's log for what was killed.",
    )
