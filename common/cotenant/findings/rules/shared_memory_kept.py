"""What appeared in /dev/shm and may be anybody's would be missing to the next launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    kept = record.meters.get("shm_kept")
    if kept is None:
        return None
    return Finding(
        "shm_kept",
        "warning",
        f"{kept['files']} files ({kept['memory_bytes'] / 2**20:.1f} MiB) that appeared in /dev/shm during this launch "
        "are still there: nothing shows that its tenants made them.",
        "See with ls -lt /dev/shm whose they are, and remove a benchmark's: the next launch finds less memory.",
    )
