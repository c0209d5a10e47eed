"""The plan: which processors, nodes, memory and accelerators each tenant gets. Pure: it reads no machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Literal

from cotenant.errors import CotenantError
from cotenant.finding import Finding
from cotenant.isolation.assignment import Cpus, assign, cores_by_node
from cotenant.isolation.memory_shares import Mems, equal_share, memory_nodes, reserve_of
from cotenant.isolation.plan_findings import (
    device_findings,
    memory_findings,
    partition_findings,
    processor_findings,
    quota_findings,
)
from cotenant.machine.accelerators import Accelerator
from cotenant.machine.topology import Machine, Processor

Policy = Literal["cores", "contiguous"]
Devices = tuple[Accelerator, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """What one tenant owns, as one of so many equal `slices`; `nodes` are those its memory comes from."""

    tenant: int
    processors: tuple[int, ...]
    nodes: tuple[int, ...]
    memory_bytes: int
    accelerators: tuple[Accelerator, ...]
    slices: int = 1


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


def plan(
    machine: Machine, tenants: int, *, policy: Policy = "cores", mems: Mems = "local", reserve_bytes: int | None = None
) -> Plan:
    """Return equal slices for `tenants`; raise CotenantError where processors or memory do not suffice.

    `cores` gives whole physical cores near each tenant's device, `contiguous` consecutive logical ids. Memory comes
    from the nodes of a slice's processors, with `mems="all"` from every node.
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
        assignment = _consecutive(machine, limit // tenants, tenants)
    else:
        assignment = assign(machine.processors, limit, _wanted(machine.processors, devices))
    reserve = reserve_of(machine, reserve_bytes)
    nodes = [memory_nodes(machine, processors, mems) for processors in assignment]
    memory = equal_share(machine, nodes, reserve)
    slices = tuple(Slice(i, assignment[i], nodes[i], memory, devices[i], tenants) for i in range(tenants))
    findings = [
        *quota_findings(machine, limit),
        *processor_findings(machine, slices, limit),
        *memory_findings(machine, slices, reserve),
        *device_findings(machine, slices, idle),
    ]
    return Plan(slices, _unused(machine, slices), idle, reserve, tuple(findings))


def plan_whole(machine: Machine, reserve_bytes: int | None = None) -> Plan:
    """Return one slice with everything usable but the reserve, for a launch that owns the machine."""
    limit = _processor_limit(machine)
    # Under a quota every node gives its part in turn, since the ranks' devices lie on all of them.
    turns = chain.from_iterable(zip_longest(*cores_by_node(machine.processors).values()))
    processors = tuple(sorted([p for core in turns if core for p in core.processors][:limit]))
    nodes = memory_nodes(machine, processors, "all")
    reserve = reserve_of(machine, reserve_bytes)
    whole = Slice(0, processors, nodes, equal_share(machine, [nodes], reserve), machine.accelerators)
    findings = (*quota_findings(machine, limit), *partition_findings(machine, [whole]))
    return Plan((whole,), _unused(machine, [whole]), (), reserve, findings)


def split_ranks(machine: Machine, whole: Slice, ranks: int) -> tuple[tuple[int, ...], ...]:
    """Return each rank's processors within `whole`: equally many, whole cores, rank i near device i, which it uses."""
    limit = len(whole.processors)
    if not 1 <= ranks <= limit:
        raise CotenantError(
            f"{ranks} ranks do not fit a slice of {limit} processors: each needs one of its own.",
            f"Use --users {limit} or fewer, and at least 1.",
        )
    devices = [whole.accelerators[rank : rank + 1] for rank in range(ranks)]
    ids = set(whole.processors)
    processors = [processor for processor in machine.processors if processor.id in ids]
    return tuple(assign(processors, limit, _wanted(processors, devices)))


def _processor_limit(machine: Machine) -> int:
    usable = len(machine.processors)
    quota = machine.quota_processors
    return usable if quota is None else max(1, min(usable, int(quota)))


def _consecutive(machine: Machine, size: int, tenants: int) -> list[Cpus]:
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
    devices = _groups_of(each, devices)
    return [devices[i * each : (i + 1) * each] for i in range(tenants)], devices[each * tenants :]


def _groups_of(each: int, devices: Devices) -> Devices:
    """Return the devices so that every `each` in turn lie on one node, as far as they come out; the rest last."""
    if each == 1:
        return devices
    grouped: list[Accelerator] = []
    rest: list[Accelerator] = []
    for node in sorted({device.node for device in devices}):
        local = [device for device in devices if device.node == node]
        even = len(local) // each * each
        grouped += local[:even]
        rest += local[even:]
    return (*grouped, *rest)


def _wanted(processors: Iterable[Processor], devices: Iterable[Devices]) -> list[int | None]:
    """Return the node that most of each tenant's devices lie on, None where no such node has processors."""
    nodes = {processor.node for processor in processors}
    wanted: list[int | None] = []
    for group in devices:
        known = Counter(device.node for device in group if device.node in nodes)
        wanted.append(min(known, key=lambda node: (-known[node], node)) if known else None)
    return wanted
