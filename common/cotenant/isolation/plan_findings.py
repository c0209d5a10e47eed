"""What a reader of the records has to know about a plan. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cotenant.finding import Finding
from cotenant.isolation.assignment import mixtures
from cotenant.isolation.memory_shares import gib
from cotenant.machine.accelerators import Accelerator
from cotenant.machine.topology import Machine
from cotenant.procfs import format_list

if TYPE_CHECKING:
    from cotenant.isolation.plan import Slice

_UNEVEN_PERCENT = 5
"""Memory that the nodes' sizes leave unused is worth a finding above this share."""


def quota_findings(machine: Machine, limit: int) -> Iterator[Finding]:
    """Say that a quota of processor time leaves only `limit` processors to give out."""
    usable = len(machine.processors)
    if limit < usable:
        yield Finding(
            "processor_quota",
            "warning",
            f"A quota of {machine.quota_processors:g} leaves {limit} of {usable} processors to give out.",
            "Raise cpu.max (on v1 cpu.cfs_quota_us) of the surrounding cgroup.",
        )


def processor_findings(machine: Machine, slices: Sequence[Slice], limit: int) -> Iterator[Finding]:
    """Say what is unused, shared between tenants, unlike from tenant to tenant, or far apart."""
    each = len(slices[0].processors)
    if spare := limit - each * len(slices):
        yield Finding(
            "processors_unused",
            "info",
            f"{spare} of {limit} processors stay unused: {len(slices)} tenants get {each} each.",
            "Choose --users so that the cores of every node divide evenly.",
        )
    by_id = {processor.id: processor for processor in machine.processors}
    sharers: defaultdict[int, set[int]] = defaultdict(set)
    for piece in slices:
        for processor in piece.processors:
            sharers[by_id[processor].core].add(piece.tenant)
    if split := [tenants for tenants in sharers.values() if len(tenants) > 1]:
        yield Finding(
            "siblings_split",
            "warning",
            f"{len(split)} physical cores serve more than one tenant ({_tenants(set().union(*split))}).",
            "Use fewer --users, and not --plan contiguous.",
        )
    yield from _mixture_findings(machine, slices)
    nodes_of = {piece.tenant: {by_id[p].node for p in piece.processors} for piece in slices}
    if len(slices) > 1 and (straddling := [tenant for tenant, nodes in nodes_of.items() if len(nodes) > 1]):
        yield Finding(
            "nodes_straddled",
            "warning",
            f"The processors of {_tenants(straddling)} lie on more than one NUMA node.",
            "Choose --users as a multiple of the number of nodes.",
        )


def memory_findings(machine: Machine, slices: Sequence[Slice], reserve: int) -> Iterator[Finding]:
    """Say that nodes of unequal size leave memory to nobody."""
    available = machine.memory_bytes - reserve
    spare = available - len(slices) * slices[0].memory_bytes
    if spare * 100 > available * _UNEVEN_PERCENT:
        yield Finding(
            "memory_unused",
            "info",
            f"{gib(spare)} of {gib(available)} stay unused: all tenants get what the scarcest node gives.",
            "--mems all lets every tenant use every node's memory.",
        )


def device_findings(machine: Machine, slices: Sequence[Slice], idle: Sequence[Accelerator]) -> Iterator[Finding]:
    """Say which devices are shared, idle, unlike or far from their tenant's processors."""
    total = len(machine.accelerators)
    if 0 < total < len(slices):
        yield Finding(
            "devices_shared",
            "warning",
            f"{len(slices)} tenants share {total} device{'s' if total > 1 else ''} in turn.",
            f"Use --users {total} for a device each.",
        )
    if idle:
        yield Finding(
            "devices_idle",
            "info",
            f"{len(idle)} of {total} devices stay idle: they do not divide by {len(slices)} tenants.",
            f"Use --users {total} for one each.",
        )
    yield from partition_findings(machine, slices)
    if len(names := sorted({device.name for device in machine.accelerators})) > 1:
        yield Finding("devices_differ", "warning", f"The devices are not alike: {', '.join(names)}.")
    node_of = {processor.id: processor.node for processor in machine.processors}
    far = [
        piece.tenant
        for piece in slices
        if not {d.node for d in piece.accelerators if d.node >= 0} <= {node_of[p] for p in piece.processors}
    ]
    if far:
        yield Finding(
            "device_on_other_node",
            "warning",
            f"The processors of {_tenants(far)} lie on another NUMA node than a device of theirs.",
            "Use fewer --users where one node has most of the devices.",
        )


def partition_findings(machine: Machine, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Say that CUDA enumerates one MIG instance in a process (NVIDIA, MIG User Guide), whatever it is shown."""
    most = max(sum(device.is_partition for device in piece.accelerators) for piece in slices)
    if most > 1:
        yield Finding(
            "partitions_unused",
            "warning",
            f"A process opens one MIG instance, and a tenant here has {most}: it uses the first.",
            f"Use --users {len(machine.accelerators)} for an instance each.",
        )


def _mixture_findings(machine: Machine, slices: Sequence[Slice]) -> Iterator[Finding]:
    found = mixtures(machine.processors, [piece.processors for piece in slices])
    if all(mixture == found[0] for mixture in found):
        return
    unequal = len({mixture.total() for mixture in found}) > 1
    yield Finding(
        "cores_uneven",
        "warning",
        f"The tenants' {len(slices[0].processors)} processors each are of "
        f"{'unequally many physical cores' if unequal else 'unlike physical cores'}.",
        "Compare tenants of such a machine with care, or choose --users so that each sort of core divides.",
    )


def _tenants(tenants: Iterable[int]) -> str:
    ids = set(tenants)
    return f"tenant{'s' if len(ids) > 1 else ''} {format_list(ids)}"
