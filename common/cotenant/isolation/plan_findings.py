"""Findings for a reader of the records about a plan: unused, shared, unlike or distant resources. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from cotenant.finding import Finding, info, warning
from cotenant.isolation.assignment import Cpus, mixtures
from cotenant.isolation.slice import Slice
from cotenant.machine.accelerators import Accelerator
from cotenant.machine.cpu import Cache
from cotenant.machine.topology import Machine
from cotenant.procfs import format_list
from cotenant.text import gib, many, noun, verb

MIB = 1 << 20
_UNEVEN_PERCENT = 5
"""Memory that the nodes' sizes leave unused is worth a finding above this share."""


def plan_findings(
    machine: Machine, slices: Sequence[Slice], limit: int, reserve: int, idle: Sequence[Accelerator]
) -> Iterator[Finding]:
    """Yield the findings about slices of `limit` processors, beside a `reserve` of memory and `idle` devices."""
    yield from quota_findings(machine, limit)
    yield from _sharing_findings(slices, limit)
    yield from _place_findings(machine, slices)
    yield from _memory_findings(machine, slices, reserve)
    yield from _device_findings(machine, slices, idle)
    yield from partition_findings(machine, slices)
    yield from _distance_findings(machine, slices)


def quota_findings(machine: Machine, limit: int) -> Iterator[Finding]:
    """Say that a quota of processor time leaves only `limit` processors to give out."""
    usable = len(machine.processors)
    if limit < usable:
        yield warning(
            f"A quota of {machine.quota_processors:g} leaves {limit} of {usable} processors to give out.",
            "Raise cpu.max (on v1 cpu.cfs_quota_us) of the surrounding cgroup.",
            rule="processor_quota",
        )


def _sharing_findings(slices: Sequence[Slice], limit: int) -> Iterator[Finding]:
    """Say how tenants share processors, and how many processors no tenant has."""
    each, parts = len(slices[0].processors), len({slice_.processors for slice_ in slices})
    if parts < len(slices):
        each_part = f"{many(each, 'processor')} for every {slices[0].sharers} of them"
        fewer = "no --slices" if len(slices) <= limit else f"--users {limit} or fewer"
        yield info(
            f"{len(slices)} users share {many(parts * each, 'processor')}"
            f"{f': {each_part}' if parts > 1 else ', all the same'}.",
            f"Use {fewer} for processors of their own.",
            rule="processors_shared",
        )
    if spare := limit - each * parts:
        yield info(
            f"{spare} of {limit} processors stay unused: {many(parts, 'slice' if parts < len(slices) else 'user')} "
            f"{verb(parts, 'gets', 'get')} {each}{' each' if parts > 1 else ''}.",
            f"Choose {'--slices' if parts < len(slices) else '--users'} so that the cores of every node divide evenly.",
            rule="processors_unused",
        )


def _place_findings(machine: Machine, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Name cores that serve several tenants, tenants of unlike cores, and tenants that lie on several nodes."""
    by_id = {processor.id: processor for processor in machine.processors}
    parts_of: defaultdict[int, set[Cpus]] = defaultdict(set)
    for slice_ in slices:
        for processor in slice_.processors:
            parts_of[by_id[processor].core].add(slice_.processors)
    if cut := [cpus for cpus in parts_of.values() if len(cpus) > 1]:
        sharing = (slice_.tenant for cpus in cut for slice_ in slices if slice_.processors in cpus)
        yield warning(
            f"{len(cut)} physical cores serve more than one user ({_tenants(sharing)}).",
            "Use fewer --users, and not --plan contiguous.",
            rule="siblings_split",
        )
    yield from _mixture_findings(machine, slices)
    straddling = [slice_.tenant for slice_ in slices if len({by_id[p].node for p in slice_.processors}) > 1]
    if straddling and len(slices) > 1:
        yield warning(
            f"The processors of {_tenants(straddling)} lie on more than one NUMA node.",
            "Choose --users as a multiple of the number of nodes.",
            rule="nodes_straddled",
        )


def cache_findings(slices: Sequence[Slice], caches: Iterable[Cache]) -> Iterator[Finding]:
    """Say which last-level caches serve processors of more than one tenant."""
    shared: defaultdict[tuple[int, int | None], list[tuple[Cpus, set[int]]]] = defaultdict(list)
    for cache in caches:
        serves = frozenset(cache.processors)
        tenants = {slice_.tenant for slice_ in slices if not serves.isdisjoint(slice_.processors)}
        if len(tenants) > 1:
            shared[cache.level, cache.size_bytes].append((cache.processors, tenants))
    for (level, size), those in shared.items():
        which = "; ".join(f"{_tenants(tenants)} (processors {format_list(cpus)})" for cpus, tenants in those)
        each = "" if size is None else f" of {size / MIB:g} MiB{' each' if len(those) > 1 else ''}"
        serve = "serve" if len(those) > 1 else "serves"
        yield info(
            f"{many(len(those), 'last-level cache')}{each} (L{level}) {serve} several users: {which}.",
            "No cgroup divides a cache; --pressure llc measures what that costs. Use --users so that each has its own.",
            rule="cache_shared",
        )


def _memory_findings(machine: Machine, slices: Sequence[Slice], reserve: int) -> Iterator[Finding]:
    """Say that nodes of unequal size leave memory to nobody."""
    available = machine.memory_bytes - reserve
    spare = available - len(slices) * slices[0].memory_bytes
    if spare * 100 > available * _UNEVEN_PERCENT:
        yield info(
            f"{gib(spare)} of {gib(available)} stay unused: all users get what the scarcest node gives.",
            "--mems all lets every user use every node's memory.",
            rule="memory_unused",
        )


def _device_findings(machine: Machine, slices: Sequence[Slice], idle: Sequence[Accelerator]) -> Iterator[Finding]:
    """Say which devices are shared, idle or unlike."""
    total = len(machine.accelerators)
    given = [device for slice_ in slices for device in slice_.accelerators]
    # Of several devices of a slice a program for one uses the first, and so do all tenants of that slice.
    if len(set(given)) < len(given):
        part = slices[0].device_share
        # A request of the user makes nothing suspect.
        severity = warning if part is None else info
        how = "in turn" if part is None else f"by {part.mode}"
        yield severity(
            f"{len(slices)} users share {many(len(set(given)), 'device')} {how}.",
            f"Use {f'--users {total}' if total < len(slices) else 'no --slices'} for a device each.",
            rule="devices_shared",
        )
    if idle:
        parts = len({slice_.accelerators for slice_ in slices})
        whose, flag = ("user", "--users") if parts == len(slices) else ("slice", "--slices")
        yield info(
            f"{len(idle)} of {total} devices stay idle: they do not divide by {many(parts, whose)}.",
            f"Use {flag} {total} for one each.",
            rule="devices_idle",
        )
    if len(names := sorted({device.name for device in machine.accelerators})) > 1:
        yield warning(f"The devices are not alike: {', '.join(names)}.", rule="devices_differ")


def _distance_findings(machine: Machine, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Say which devices are far from their tenant's processors."""
    node_of = {processor.id: processor.node for processor in machine.processors}
    far = [
        slice_.tenant
        for slice_ in slices
        if not {d.node for d in slice_.accelerators if d.node >= 0} <= {node_of[p] for p in slice_.processors}
    ]
    if far:
        yield warning(
            f"The processors of {_tenants(far)} lie on another NUMA node than a device of theirs.",
            "Use fewer --users where one node has most of the devices.",
            rule="device_on_other_node",
        )


def partition_findings(machine: Machine, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Say that CUDA enumerates one MIG instance in a process (NVIDIA, MIG User Guide), whatever it is shown."""
    most = max(sum(device.is_partition for device in slice_.accelerators) for slice_ in slices)
    if most > 1:
        yield warning(
            f"A process opens one MIG instance, and a user here has {most}: it uses the first.",
            f"Use --users {len(machine.accelerators)} for an instance each.",
            rule="partitions_unused",
        )


def _mixture_findings(machine: Machine, slices: Sequence[Slice]) -> Iterator[Finding]:
    by_tenant = mixtures(machine.processors, [slice_.processors for slice_ in slices])
    if all(mixture == by_tenant[0] for mixture in by_tenant):
        return
    unequal = len({mixture.total() for mixture in by_tenant}) > 1
    yield warning(
        f"The users' {len(slices[0].processors)} processors each are of "
        f"{'unequally many physical cores' if unequal else 'unlike physical cores'}.",
        "Compare users of such a machine with care, or choose --users so that each sort of core divides.",
        rule="cores_uneven",
    )


def _tenants(tenants: Iterable[int]) -> str:
    ids = set(tenants)
    return f"{noun(len(ids), 'user')} {format_list(ids)}"
