"""What tenants leave in /dev/shm would be missing to the next launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    left = record.meters.get("shm_left")
    if left is None:
        return None
    return Finding(
        "shm_left",
        "warning",
        f"The tenants of this launch left {left['files']} files ({left['memory_bytes'] / 2**20:.1f} MiB) in /dev/shm; "
        "they were removed.",
        "Let the benchmark unlink its shared memory also when it is ended; data loaders do so by themselves.",
    )
