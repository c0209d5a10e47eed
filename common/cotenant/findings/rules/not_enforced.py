"""A slice whose limits the kernel did not enforce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    if not record.isolation.unenforced:
        return None
    return not_enforced(record.isolation.backend, record.isolation.unenforced)


def not_enforced(backend: str, unenforced: Sequence[str]) -> Finding:
    """Return what is to be said of a backend that does not hold these limits; `doctor` says it beforehand."""
    return Finding(
        "not_enforced",
        "warning",
        f"These limits of the slice are not enforced (isolation: {backend}): {', '.join(unenforced)}.",
        "Run where cgroups are writable, or demand it with --isolation require.",
    )
