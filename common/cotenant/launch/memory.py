"""Finds the memory that was full when the kernel killed a tenant's process: its slice's, or the host's."""

from __future__ import annotations

from collections.abc import Iterable

from cotenant.launch.command import BATCH_FLAGS, number_behind
from cotenant.launch.endings import Ending
from cotenant.launch.tenant import Tenant
from cotenant.machine.load import memory_kills
from cotenant.results.told import tenant_part
from cotenant.text import gib

NEAR_LIMIT = 0.99

OWN, HOST = "out_of_memory", "host_out_of_memory"


def kills_outside(before: int, tenants: Iterable[Tenant]) -> int:
    """Return the kernel's kills for memory outside the slices of `tenants`; `before`: its count at the launch's
    start."""
    return max(0, memory_kills() - before - sum(tenant.after.oom_kills or 0 for tenant in tenants))


def out_of_memory(tenant: Tenant, outside: int) -> Ending | None:
    """Return the ending if the kernel killed a process of the tenant for memory, else None.

    The slice's counter of kills decides, whatever the exit status. The cause is the slice if its count of reached
    limits or, if the kernel has none, its peak says so. Kills `outside` the slices are taken for the reason of an
    unexplained end by SIGKILL, and only if the slice does not count kills.
    """
    counted = tenant.after
    if counted.oom_kills is None and tenant.ending is None and tenant.status == -9 and outside > 0:
        return Ending(HOST, "It was killed while the host ran out of memory. Use a larger --reserve.")
    if not counted.oom_kills:
        return None
    limit_bytes, peak_bytes = tenant.read_back.memory_bytes or 0, counted.memory_peak_bytes or 0
    size = gib(limit_bytes)
    if counted.oom_events:
        return Ending(
            OWN,
            f"It needed more than the {size} of its slice, and the kernel killed a process of it. "
            f"{_half_batch(tenant)}",
        )
    # Page cache alone can also raise the peak that much.
    if counted.oom_events is None and peak_bytes >= NEAR_LIMIT * limit_bytes:
        return Ending(
            OWN,
            f"It reached the {size} of its slice, and the kernel killed a process of it: for that limit or because the "
            "host was full, which cgroup v1 does not count. Use a larger --reserve if the host was. "
            f"{_half_batch(tenant)}",
        )
    return Ending(
        HOST,
        f"The kernel killed a process of it while its slice used at most {gib(peak_bytes)} of {size}: the host, a NUMA "
        "node of it or a cgroup above the slice was full. Use a larger --reserve.",
    )


def _half_batch(tenant: Tenant) -> str:
    sizes = (tenant_part(rank.work).arguments.get("batch_size") for rank in tenant.ranks.values())
    batch = next((size for size in sizes if isinstance(size, int)), 0)
    # With a device, most of the batch is there, and the host's memory holds libraries.
    if (size := number_behind(tenant.spec.command, *BATCH_FLAGS) or batch) > 1 and not tenant.spec.slice.accelerators:
        return f"Try half the batch: -- --batch-size {size // 2}"
    return "Give it less to hold, or fewer users with --users."
