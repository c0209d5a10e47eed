"""Decides which tenant a connection belongs to, from the kernel's facts about the process at its other end.

Any process that can reach a tenant's socket can connect to it, and a line of nonsense would cost the tenant its place.
So the owner is looked up at accept: a process cannot choose its session or ancestors, and only root can its cgroups.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Collection

from cotenant.isolation import cgroupfs
from cotenant.isolation.processes import descent, is_marked
from cotenant.launch.rendezvous import Claim
from cotenant.launch.tenant import Tenant
from cotenant.protocol.messages import RUN_VARIABLE

RESERVED_DESCRIPTORS = 128
MOST_CONNECTIONS = 512


def claim(tenant: Tenant, tenants: Collection[Tenant], pid: int, user: int) -> Claim:
    """Return the kind of a connection of this process to the tenant's socket.

    An orphan with a session of its own is known by its slice or, if no cgroup holds slices, by the marker, which any
    process of the same user can set. Of a process outside our namespace only the user is known.
    """
    if not pid:
        return Claim.UNPROVEN if user == os.geteuid() else Claim.STRANGER
    if (owner := _leader(pid, tenants)) is not None:
        return Claim.OWN if owner == tenant.index else Claim.STRANGER
    if tenant.live.entry.procs_files:
        return Claim.OWN if is_within(tenant, pid) else Claim.STRANGER
    run = tenant.spec.environment.get(RUN_VARIABLE, "")
    return Claim.UNPROVEN if is_marked(pid, run, tenant.index) else Claim.STRANGER


def owner_of(tenants: Collection[Tenant], pid: int) -> Tenant | None:
    """Return the tenant to which a process certainly belongs; None if it belongs to none, or cannot be seen."""
    if not pid:
        return None
    number = _leader(pid, tenants)
    return next((tenant for tenant in tenants if tenant.index == number or is_within(tenant, pid)), None)


def _leader(pid: int, tenants: Collection[Tenant]) -> int | None:
    """Return the number of the living tenant whose first process is an ancestor of this one, or led its session."""
    return descent(pid, {tenant.index: tenant.process.pid for tenant in tenants if tenant.alive})


def is_within(tenant: Tenant, pid: int) -> bool:
    """Return whether a process is in all cgroups of a tenant's slice; False if the slice has none."""
    groups = [cgroupfs.subtree(file.parent) for file in tenant.live.entry.procs_files]
    with contextlib.suppress(OSError):
        return bool(groups) and all(any(pid in cgroupfs.pids(level) for level in levels) for levels in groups)
    return False


def most_connections(tenants: int) -> int:
    """Return the number of connections a tenant may hold at once, so that descriptors are left for the others.

    A rank takes two descriptors: its connection, and one to see its end.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(1, min(MOST_CONNECTIONS, (soft - RESERVED_DESCRIPTORS) // 2 // tenants))
