"""The plan: which processors, nodes, memory and accelerators each tenant gets. Pure: it reads no machine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Literal

from cotenant.errors import CotenantError
from cotenant.findings.finding import Finding
from cotenant.isolation.deal import Core, cores_by_node, deal
from cotenant.machine.accelerators import Accelerator
from cotenant.machine.cpulist import format_list
from cotenant.machine.topology import Machine, Processor

Policy = Literal["cores", "contiguous"]
Devices = tuple[Accelerator, ...]

PAGE_BYTES = 4096
_RESERVE_BYTES = 1 << 30
_RESERVE_PERCENT = 3
_UNEVEN_PERCENT = 5
"""Memory that the nodes' sizes leave unused is worth a finding above this share."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What one tenant owns; `nodes` are those its memory comes from."""

    tenant: int
    processors: tuple[int, ...]
    nodes: tuple[int, ...]
    memory_bytes: int
    accelerators: tuple[Accelerator, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """One slice per tenant, what nobody gets, and what a reader of the records has to know about it."""

    slices: tuple[Slice, ...]
    unused_processors: tuple[int, ...]
    idle_accelerators: tuple[Accelerator, ...]
    reserve_bytes: int
    findings: tuple[Finding, ...]


def tenants_by_default(machine: Machine, users: int | None) -> int:
    """Return how many tenants a launch has: as many as asked, else one per accelerator, else at most two."""
    return users if users is not None else len(machine.accelerators) or min(2, _processor_limit(machine))


def plan(machine: Machine, tenants: int, *, policy: Policy = "cores", reserve_bytes: int | None = None) -> Plan:
    """Return equal slices for `tenants`; raise CotenantError where processors or memory do not suffice.

    `cores` gives whole physical cores near each tenant's device, `contiguous` consecutive logical ids.
    `reserve_bytes` stays with the host, by default 3 % of the memory and at least 1 GiB.
    """
    if tenants < 1:
        raise CotenantError(f"{tenants} tenants cannot be planned.", "Use --users 1 or more.")
    limit = _processor_limit(machine)
    if tenants > limit:
        quota = f" under a quota of {machine.quota_processors:g}" if limit < len(machine.processors) else ""
        raise CotenantError(
            f"{tenants} tenants need a processor each, and {limit} can be given out{quota}.",
            f"Use --users {limit} or fewer.",
        )
    devices, idle = _share_devices(machine.accelerators, tenants)
    if policy == "contiguous":
        hands = _consecutive(machine, limit // tenants, tenants)
    else:
        hands = deal(machine.processors, limit, _wanted(machine.processors, devices))
    reserve = _reserve(machine, reserve_bytes)
    nodes = [_memory_nodes(machine, hand) for hand in hands]
    memory = _memory(machine, nodes, reserve)
    slices = tuple(Slice(i, hands[i], nodes[i], memory, devices[i]) for i in range(tenants))
    findings = [
        *_processor_findings(machine, slices),
        *_memory_findings(machine, slices, reserve),
        *_device_findings(machine, slices, idle),
    ]
    return Plan(slices, _unused(machine, slices), idle, reserve, tuple(findings))


def plan_whole(machine: Machine, reserve_bytes: int | None = None) -> Plan:
    """Return one slice with everything usable but the reserve, for a launch that owns the machine."""
    limit = _processor_limit(machine)
    # Under a quota every node gives its part in turn, since the ranks' devices lie on all of them.
    turns = zip_longest(*cores_by_node(machine.processors).values(), fillvalue=())
    processors = tuple(sorted([p for turn in turns for core in turn for p in core][:limit]))
    nodes = tuple(sorted(node.id for node in machine.nodes if node.memory_bytes))
    nodes = nodes or _memory_nodes(machine, processors)
    reserve = _reserve(machine, reserve_bytes)
    whole = Slice(0, processors, nodes, _memory(machine, [nodes], reserve), machine.accelerators)
    return Plan((whole,), _unused(machine, [whole]), (), reserve, tuple(_quota_findings(machine)))


def split_ranks(machine: Machine, whole: Slice, ranks: int) -> tuple[tuple[int, ...], ...]:
    """Return each rank's processors within `whole`: equally many, whole cores, rank i near device i."""
    limit = len(whole.processors)
    if not 1 <= ranks <= limit:
        raise CotenantError(
            f"{ranks} ranks do not fit a slice of {limit} processors: each needs one of its own.",
            f"Use --users {limit} or fewer, and at least 1.",
        )
    devices, _ = _share_devices(whole.accelerators, ranks)
    ids = set(whole.processors)
    processors = [processor for processor in machine.processors if processor.id in ids]
    return tuple(deal(processors, limit, _wanted(processors, devices)))


def _processor_limit(machine: Machine) -> int:
    usable = len(machine.processors)
    quota = machine.quota_processors
    return usable if quota is None else max(1, min(usable, int(quota)))


def _consecutive(machine: Machine, size: int, tenants: int) -> list[Core]:
    ids = sorted(processor.id for processor in machine.processors)
    return [tuple(ids[tenant * size : (tenant + 1) * size]) for tenant in range(tenants)]


def _unused(machine: Machine, slices: Sequence[Slice]) -> tuple[int, ...]:
    given = set(chain.from_iterable(piece.processors for piece in slices))
    return tuple(sorted(processor.id for processor in machine.processors if processor.id not in given))


def _share_devices(devices: Devices, tenants: int) -> tuple[list[Devices], Devices]:
    """Return each tenant's devices and those left over; with fewer devices than tenants, one in turn."""
    if len(devices) < tenants:
        return [devices[i % len(devices) :][:1] if devices else () for i in range(tenants)], ()
    each = len(devices) // tenants
    return [devices[i * each : (i + 1) * each] for i in range(tenants)], devices[each * tenants :]


def _wanted(processors: Iterable[Processor], devices: Iterable[Devices]) -> list[int | None]:
    """Return the node that most of each tenant's devices lie on, None where no such node has processors."""
    nodes = {processor.node for processor in processors}
    wanted: list[int | None] = []
    for group in devices:
        known = Counter(device.node for device in group if device.node in nodes)
        wanted.append(min(known, key=lambda node: (-known[node], node)) if known else None)
    return wanted


def _reserve(machine: Machine, asked: int | None) -> int:
    reserve = max(_RESERVE_BYTES, machine.memory_bytes * _RESERVE_PERCENT // 100) if asked is None else asked
    if not 0 <= reserve < machine.memory_bytes:
        raise CotenantError(
            f"A reserve of {_gib(reserve)} does not fit {_gib(machine.memory_bytes)} of memory.",
            "Raise the memory limit of the surrounding cgroup, or ask for a smaller reserve.",
        )
    return reserve


def _memory_nodes(machine: Machine, processors: Sequence[int]) -> tuple[int, ...]:
    """Return the slice's own nodes, or all that have memory where its own have none."""
    ids = set(processors)
    own = {processor.node for processor in machine.processors if processor.id in ids}
    filled = {node.id for node in machine.nodes if node.memory_bytes}
    return tuple(sorted(own & filled or filled or own))


def _memory(machine: Machine, nodes: Sequence[tuple[int, ...]], reserve: int) -> int:
    """Return the bytes of every slice: what RAM and the fullest nodes leave, in whole pages."""
    shares = [(machine.memory_bytes - reserve) // len(nodes)]
    bytes_of = {node.id: node.memory_bytes for node in machine.nodes}
    everything = sum(bytes_of.values())
    for group in {group for group in nodes if 0 < sum(bytes_of.get(n, 0) for n in group) < everything}:
        local = sum(bytes_of.get(node, 0) for node in group)
        inside = sum(set(other) <= set(group) for other in nodes)
        shares.append((local - reserve * local // everything) // inside)
    memory = min(shares) // PAGE_BYTES * PAGE_BYTES
    if memory < PAGE_BYTES:
        raise CotenantError(
            f"{_gib(machine.memory_bytes)} of memory, {_gib(reserve)} of it in reserve, leave no page "
            f"for each tenant ({len(nodes)} in all).",
            "Use fewer --users, or a smaller reserve.",
        )
    return memory


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 30):.2f} GiB"


def _processor_findings(machine: Machine, slices: Sequence[Slice]) -> Iterator[Finding]:
    yield from _quota_findings(machine)
    each, limit = len(slices[0].processors), _processor_limit(machine)
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
    if len({len({by_id[p].core for p in piece.processors}) for piece in slices}) > 1:
        yield Finding(
            "cores_uneven",
            "warning",
            f"The tenants' {each} processors each are of unequally many physical cores.",
        )
    nodes_of = {piece.tenant: {by_id[p].node for p in piece.processors} for piece in slices}
    if len(slices) > 1 and (straddling := [tenant for tenant, nodes in nodes_of.items() if len(nodes) > 1]):
        yield Finding(
            "nodes_straddled",
            "warning",
            f"The processors of {_tenants(straddling)} lie on more than one NUMA node.",
            "Choose --users as a multiple of the number of nodes.",
        )


def _quota_findings(machine: Machine) -> Iterator[Finding]:
    limit, usable = _processor_limit(machine), len(machine.processors)
    if limit < usable:
        yield Finding(
            "processor_quota",
            "warning",
            f"A quota of {machine.quota_processors:g} leaves {limit} of {usable} processors to give out.",
            "Raise cpu.max (on v1 cpu.cfs_quota_us) of the surrounding cgroup.",
        )


def _memory_findings(machine: Machine, slices: Sequence[Slice], reserve: int) -> Iterator[Finding]:
    available = machine.memory_bytes - reserve
    spare = available - len(slices) * slices[0].memory_bytes
    if spare * 100 > available * _UNEVEN_PERCENT:
        yield Finding(
            "memory_unused",
            "info",
            f"{_gib(spare)} of {_gib(available)} stay unused: all tenants get what the scarcest node gives.",
        )


def _device_findings(machine: Machine, slices: Sequence[Slice], idle: Devices) -> Iterator[Finding]:
    total = len(machine.accelerators)
    if 0 < total < len(slices):
        yield Finding(
            "devices_shared",
            "warning",
            f"{len(slices)} tenants share {total} devices in turn.",
            f"Use --users {total} for a device each.",
        )
    if idle:
        yield Finding(
            "devices_idle",
            "info",
            f"{len(idle)} of {total} devices stay idle: they do not divide by {len(slices)} tenants.",
            f"Use --users {total} for one each.",
        )
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


def _tenants(tenants: Iterable[int]) -> str:
    ids = set(tenants)
    return f"tenant{'s' if len(ids) > 1 else ''} {format_list(ids)}"
