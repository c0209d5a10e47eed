"""Findings for a reader of the records about a plan: unused, shared, unlike or distant resources. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from cotenant.finding import Finding, info, warning
from cotenant.isolation.cores import Cpus, mixtures
from cotenant.isolation.slice import Slice
from cotenant.machine.accelerators import Accelerator
from cotenant.machine.topology import Machine, Processor
from cotenant.procfs import shortened_list
from cotenant.text import gib, listed, many, noun, verb

MIB = 1 << 20
TenantsOf = Mapping[Cpus, list[int]]
_UNEVEN_PERCENT = 5
"""Memory left unused by unequal nodes is worth a finding above this percentage."""


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
    """Report a quota of processor time that leaves only `limit` processors."""
    usable = len(machine.processors)
    if limit < usable:
        yield warning(
            f"A quota of {machine.quota_processors:g} leaves {limit} of {usable} processors to give out.",
            "Raise cpu.max (on v1 cpu.cfs_quota_us) of the surrounding cgroup.",
            rule="processor_quota",
        )


def _sharing_findings(slices: Sequence[Slice], limit: int) -> Iterator[Finding]:
    """Report processors that tenants share, and unused ones."""
    per_slice, parts = len(slices[0].processors), len({slice_.part for slice_ in slices})
    if parts < len(slices):
        each_part = f"{many(per_slice, 'processor')} for every {slices[0].sharers} of them"
        fewer = "no --slices" if len(slices) <= limit else f"--users {limit} or fewer"
        yield info(
            f"{len(slices)} users share {many(parts * per_slice, 'processor')}"
            f"{f': {each_part}' if parts > 1 else ', all the same'}.",
            f"Use {fewer} for processors of their own.",
            rule="processors_shared",
        )
    if spare := limit - per_slice * parts:
        yield info(
            f"{spare} of {limit} processors stay unused: {many(parts, 'slice' if parts < len(slices) else 'user')} "
            f"{verb(parts, 'gets', 'get')} {per_slice}{' each' if parts > 1 else ''}.",
            f"Choose {'--slices' if parts < len(slices) else '--users'} so that the cores of every node divide evenly.",
            rule="processors_unused",
        )


def _place_findings(machine: Machine, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Report cores that serve several tenants, tenants on unlike cores, and tenants on several nodes or sockets."""
    by_id = {processor.id: processor for processor in machine.processors}
    tenants_of = _tenants_of(slices)
    parts_of: defaultdict[int, set[int]] = defaultdict(set)
    for cpus in tenants_of:
        for number in cpus:
            parts_of[by_id[number].core].add(cpus[0])
    if cut := [parts for parts in parts_of.values() if len(parts) > 1]:
        several = set(chain.from_iterable(cut))
        sharing = chain.from_iterable(tenants for cpus, tenants in tenants_of.items() if cpus[0] in several)
        yield warning(
            f"{len(cut)} physical cores serve more than one user ({_tenants(sharing)}).",
            "Use fewer --users, and not --plan contiguous.",
            rule="siblings_split",
        )
    yield from _mixture_findings(machine, tenants_of)
    if len(slices) > 1:
        yield from _straddling_findings(by_id, tenants_of)


def _straddling_findings(by_id: Mapping[int, Processor], tenants_of: TenantsOf) -> Iterator[Finding]:
    """Report the tenants on several nodes or sockets, and these sockets."""
    of_nodes, of_sockets = list[int](), list[int]()
    sockets: set[int] = set()
    for cpus, tenants in tenants_of.items():
        if len({by_id[number].node for number in cpus}) > 1:
            of_nodes += tenants
        if len(packages := {by_id[number].package for number in cpus}) > 1:
            of_sockets += tenants
            sockets |= packages
    across = f"on sockets {shortened_list(sockets)}"
    if of_nodes:
        also = f" and {across}" if of_sockets == of_nodes else f", those of {_tenants(of_sockets)} also {across}"
        yield warning(
            f"The processors of {_tenants(of_nodes)} lie on more than one NUMA node{also if of_sockets else ''}.",
            "Choose --users as a multiple of the number of nodes.",
            rule="nodes_straddled",
        )
    elif of_sockets:
        yield warning(
            f"The processors of {_tenants(of_sockets)} lie {across}.",
            "Choose --users as a multiple of the number of sockets.",
            rule="sockets_straddled",
        )


def cache_findings(machine: Machine, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Report last-level caches that serve processors of more than one tenant."""
    tenants_by_processor: defaultdict[int, list[int]] = defaultdict(list)
    for cpus, tenants in _tenants_of(slices).items():
        for number in cpus:
            tenants_by_processor[number] += tenants
    shared: defaultdict[tuple[int, int | None], list[str]] = defaultdict(list)
    for cache in dict.fromkeys(processor.cache for processor in machine.processors):
        if cache is None:
            continue
        served = set(chain.from_iterable(tenants_by_processor.get(number, ()) for number in cache.processors))
        if len(served) > 1:
            serves = f"{_tenants(served)} (processors {shortened_list(cache.processors)})"
            shared[cache.level, cache.size_bytes].append(serves)
    for (level, size), those in shared.items():
        of_size = "" if size is None else f" of {size / MIB:g} MiB{' each' if len(those) > 1 else ''}"
        serve = "serve" if len(those) > 1 else "serves"
        yield info(
            f"{many(len(those), 'last-level cache')}{of_size} (L{level}) {serve} several users: "
            f"{listed(those, between='; ')}.",
            "No cgroup divides a cache; --pressure llc measures what that costs. Use --users so that each has its own.",
            rule="cache_shared",
        )


def _tenants_of(slices: Iterable[Slice]) -> TenantsOf:
    """Return the tenants of each part of the processors."""
    cpus_of = {slice_.part: slice_.processors for slice_ in slices}
    tenants_of = {part: list[int]() for part in cpus_of}
    for slice_ in slices:
        tenants_of[slice_.part].append(slice_.tenant)
    return {cpus_of[part]: tenants for part, tenants in tenants_of.items()}


def _memory_findings(machine: Machine, slices: Sequence[Slice], reserve: int) -> Iterator[Finding]:
    """Report memory left unused because nodes differ in size."""
    available = machine.memory_bytes - reserve
    spare = available - len(slices) * slices[0].memory_bytes
    if spare * 100 > available * _UNEVEN_PERCENT:
        yield info(
            f"{gib(spare)} of {gib(available)} stay unused: all users get what the scarcest node gives.",
            "--mems all lets every user use every node's memory.",
            rule="memory_unused",
        )


def _device_findings(machine: Machine, slices: Sequence[Slice], idle: Sequence[Accelerator]) -> Iterator[Finding]:
    """Report shared, idle and unlike devices."""
    total = len(machine.accelerators)
    given = [device for slice_ in slices for device in slice_.accelerators]
    # A program for one device uses the first of its slice, and so do all tenants of that slice.
    if len(set(given)) < len(given):
        part = slices[0].device_share
        # Sharing on request makes nothing suspect.
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
            f"{len(idle)} of {total} devices stay idle: {total} cannot be divided evenly by {many(parts, whose)}.",
            f"Use {flag} {total} for one each.",
            rule="devices_idle",
        )
    if len(names := sorted({device.name for device in machine.accelerators})) > 1:
        yield warning(f"The devices are not alike: {', '.join(names)}.", rule="devices_differ")


def _distance_findings(machine: Machine, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Report devices far from their tenant's processors."""
    node_of = {processor.id: processor.node for processor in machine.processors}
    nodes_of = {cpus[0]: {node_of[number] for number in cpus} for cpus in _tenants_of(slices)}
    far = [
        slice_.tenant
        for slice_ in slices
        if not {d.node for d in slice_.accelerators if d.node >= 0} <= nodes_of[slice_.part]
    ]
    if far:
        yield warning(
            f"The processors of {_tenants(far)} lie on another NUMA node than a device of theirs.",
            "Use fewer --users if one node has most of the devices.",
            rule="device_on_other_node",
        )


def partition_findings(machine: Machine, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Report unused MIG instances: CUDA enumerates one per process (NVIDIA, MIG User Guide)."""
    most = max(sum(device.is_partition for device in slice_.accelerators) for slice_ in slices)
    if most > 1:
        yield warning(
            f"A process opens one MIG instance, and a user here has {most}: it uses the first.",
            f"Use --users {len(machine.accelerators)} for an instance each.",
            rule="partitions_unused",
        )


def _mixture_findings(machine: Machine, tenants_of: TenantsOf) -> Iterator[Finding]:
    by_part = mixtures(machine.processors, tenants_of)
    remedy = "Compare users of such a machine with care, or choose --users so that each sort of core divides."
    if any(mixture != by_part[0] for mixture in by_part):
        unequal = len({mixture.total() for mixture in by_part}) > 1
        yield warning(
            f"The users' {len(next(iter(tenants_of)))} processors each are of "
            f"{'unequally many physical cores' if unequal else 'unlike physical cores'}.",
            remedy,
            rule="cores_uneven",
        )
        return
    cache_bytes = {processor.id: processor.cache_bytes for processor in machine.processors}
    alike: defaultdict[frozenset[tuple[int, int]], list[int]] = defaultdict(list)
    for cpus, tenants in tenants_of.items():
        alike[frozenset(Counter(cache_bytes[number] for number in cpus).items())] += tenants
    if len(alike) > 1:
        sizes = (f"{_sizes(sizes)} for {_tenants(tenants)}" for sizes, tenants in alike.items())
        yield warning(
            f"The users' processors are alike but for their last-level caches: {listed(sizes, between='; ')}.",
            remedy,
            rule="cores_uneven",
        )


def _sizes(sizes: Iterable[tuple[int, int]]) -> str:
    """Return `96 MiB`, or for unlike processors `6 of 96 MiB and 2 of 32 MiB`."""
    words = [
        (count, f"{size / MIB:g} MiB" if size else "an unknown size") for size, count in sorted(sizes, reverse=True)
    ]
    return words[0][1] if len(words) == 1 else " and ".join(f"{count} of {size}" for count, size in words)


def _tenants(tenants: Iterable[int]) -> str:
    ids = set(tenants)
    return f"{noun(len(ids), 'user')} {shortened_list(ids)}"
