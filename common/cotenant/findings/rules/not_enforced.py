"""A slice whose limits the kernel did not enforce."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.findings.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    if not record.isolation.unenforced:
        return None
    missing = ", ".join(record.isolation.unenforced)
    return Finding(
        "not_enforced",
        "warning",
        f"These limits of the slice are not enforced (isolation: {record.isolation.backend}): {missing}.",
        "Run where cgroups are writable, or demand it with --isolation require.",
    )
