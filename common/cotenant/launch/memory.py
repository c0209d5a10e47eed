"""Finds which memory was full when the kernel killed a tenant's process: its slice's, a higher cgroup's, the host's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from cotenant.isolation.backend import Counters, ReadBack
from cotenant.launch.command import BATCH_FLAGS, number_behind
from cotenant.launch.tenant import Reason, Tenant
from cotenant.machine.kernel_log import KernelLog, MemoryKill
from cotenant.machine.load import memory_kills
from cotenant.procfs import format_list
from cotenant.results.build import tenant_part
from cotenant.text import gib

NEAR_LIMIT = 0.99

OWN, HOST = "out_of_memory", "host_out_of_memory"


@dataclass(frozen=True, slots=True)
class HostKills:
    """The kernel's kills for memory during a launch: the number `outside` the slices, and those in the kernel's log.

    Kills in another full cgroup, which holds no slice, do not count as outside: they put no pressure on tenants.
    """

    outside: int = 0
    logged: tuple[MemoryKill, ...] = ()


class KillWatch:
    """Watches the kernel's kills for memory from its construction on."""

    def __init__(self) -> None:
        self._log, self._logged = KernelLog(), list[MemoryKill]()
        self._before = memory_kills()

    def so_far(self, tenants: Collection[Tenant]) -> HostKills:
        """Return the kills so far; those in the slices of `tenants` are taken off the kernel's count."""
        self._logged += self._log.kills()
        own = sum(tenant.after.oom_kills or 0 for tenant in tenants)
        elsewhere = sum(_elsewhere(kill, tenants) for kill in self._logged)
        return HostKills(max(0, memory_kills() - self._before - own - elsewhere), tuple(self._logged))

    def close(self) -> None:
        self._log.close()


def out_of_memory(tenant: Tenant, host: HostKills) -> Reason | None:
    """Return (outcome, message) if the kernel killed a process of the tenant for memory, else None.

    The kernel's log names the process and the limit; without it the slice's counter of kills decides, whatever the exit
    status. Then the cause is the slice if its count of reached limits or, if the kernel has none, its peak says so.
    Only if the slice counts no kills are others on this host taken for the reason of the tenant's end.
    """
    counted = tenant.after
    for kill in host.logged:
        # Without a cgroup only the tenant's first process is known, by its number.
        if _inside(kill.victim, tenant) or kill.pid == tenant.process.pid:
            return _by_the_log(tenant, kill)
    if counted.oom_kills is None and tenant.reason is None and tenant.status == -9 and host.outside > 0:
        return HOST, "It was killed while the host ran out of memory. Use a larger --reserve."
    if not counted.oom_kills:
        return None
    if counted.oom_events:
        return _own(tenant)
    size = gib(tenant.read_back.memory_bytes or 0)
    if counted.oom_events is None and _may_be_full(tenant.read_back, counted):
        return OWN, (
            f"The kernel killed a process of it for memory, the {size} of its slice or the host's: no log says which. "
            f"{_half_batch(tenant)} Or use a larger --reserve."
        )
    peak = gib(counted.memory_peak_bytes or 0)
    return HOST, (
        f"The kernel killed a process of it while its slice used at most {peak} of {size}: "
        "the host or a NUMA node of it was out of memory. Use a larger --reserve."
    )


def _inside(cgroup: str, tenant: Tenant) -> bool:
    """Return whether a cgroup, whose path begins at the kernel's root, is the tenant's slice or below it.

    Only the end of the slice's path is compared, `<run>/t<i>`: inside a container our paths begin elsewhere.
    """
    return any(f"/{'/'.join(file.parts[-3:-1])}/" in f"{cgroup}/" for file in tenant.live.entry.procs_files[:1])


def _elsewhere(kill: MemoryKill, tenants: Collection[Tenant]) -> bool:
    """Return whether a kill was for the limit of a cgroup that holds no tenant's slice, as far as our paths tell."""
    places = [f"{file.parent}/" for tenant in tenants for file in tenant.live.entry.procs_files[:1]]
    if kill.limited is None or not places or any(_inside(kill.victim, tenant) for tenant in tenants):
        return False
    return not any(f"{kill.limited}/" in place for place in places)


def _by_the_log(tenant: Tenant, kill: MemoryKill) -> Reason:
    if kill.limited is not None and _inside(kill.limited, tenant):
        return _own(tenant)
    if kill.limited is not None:
        return HOST, (
            f"The kernel killed a process of it for the limit of the cgroup {kill.limited}, above its slice. "
            "Raise that limit, or use a larger --reserve."
        )
    if kill.nodes:
        return HOST, (
            f"The kernel killed a process of it because NUMA node {format_list(kill.nodes)} was full, not its slice. "
            "Use a larger --reserve, or --mems all."
        )
    return HOST, (
        "The kernel killed a process of it because the host itself was out of memory. Use a larger --reserve."
    )


def _may_be_full(limits: ReadBack, counted: Counters) -> bool:
    """Return whether the slice may have reached its limit, by its peak; page cache alone can also raise it so far."""
    if limits.memory_bytes is None or counted.memory_peak_bytes is None:
        return True
    return counted.memory_peak_bytes >= NEAR_LIMIT * limits.memory_bytes


def _own(tenant: Tenant) -> Reason:
    return OWN, (
        f"It needed more than the {gib(tenant.read_back.memory_bytes or 0)} of its slice, and the kernel killed a "
        f"process of it. {_half_batch(tenant)}"
    )


def _half_batch(tenant: Tenant) -> str:
    sizes = (tenant_part(rank.work).arguments.get("batch_size") for rank in tenant.ranks.values())
    own = next((size for size in sizes if isinstance(size, int)), 0)
    # With a device, most of the batch is there, and the host's memory holds libraries.
    if (size := number_behind(tenant.spec.command, *BATCH_FLAGS) or own) > 1 and not tenant.spec.slice.accelerators:
        return f"Try half the batch: -- --batch-size {size // 2}"
    return "Give it less to hold, or fewer users with --users."
