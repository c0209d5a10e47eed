"""The plan: which processors, nodes, memory and accelerators each tenant gets. Pure: it reads no machine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from cotenant.errors import CotenantError
from cotenant.finding import Finding, info, warning
from cotenant.isolation.assignment import Cpus, assign, mixtures
from cotenant.isolation.device_shares import Devices, share_devices, wanted_nodes
from cotenant.isolation.memory_shares import Mems, equal_share, memory_nodes, reserve_of
from cotenant.isolation.sharing import everything, share_consecutive, share_cores
from cotenant.machine.accelerators import Accelerator
from cotenant.machine.topology import Machine
from cotenant.procfs import format_list
from cotenant.text import gib, many

Policy = Literal["cores", "contiguous"]

_UNEVEN_PERCENT = 5
"""Memory that the nodes' sizes leave unused is worth a finding above this share."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What one tenant has, as one of so many equal `slices`; `nodes` are those its memory comes from.

    `sharers` tenants of the plan have these processors, itself included. Memory is each tenant's own.
    """

    tenant: int
    processors: tuple[int, ...]
    nodes: tuple[int, ...]
    memory_bytes: int
    accelerators: tuple[Accelerator, ...]
    slices: int = 1
    sharers: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """What each tenant gets, what nobody does, and what a reader of the records has to know about it."""

    slices: tuple[Slice, ...]
    unused_processors: tuple[int, ...]
    idle_accelerators: tuple[Accelerator, ...]
    reserve_bytes: int
    findings: tuple[Finding, ...]

    @property
    def device_share_bytes(self) -> int | None:
        """The memory that a tenant has of a device, where its tenants have equal parts: the least. None without any."""
        tenants_of = Counter(device for slice_ in self.slices for device in slice_.accelerators)
        return min((device.memory_bytes // tenants for device, tenants in tenants_of.items()), default=None)

    @property
    def whole_device(self) -> str:
        """The model of the devices, where no two tenants share one and all are alike; else empty."""
        devices = [device for slice_ in self.slices for device in slice_.accelerators]
        models = {device.name for device in devices}
        return models.pop() if len(models) == 1 and len(set(devices)) == len(devices) else ""

    @property
    def parts(self) -> tuple[Cpus, ...]:
        """The processors of the tenants, those that several share once."""
        return tuple(dict.fromkeys(slice_.processors for slice_ in self.slices))

    @property
    def sharers(self) -> int:
        """How many tenants have the same processors: as many everywhere."""
        return self.slices[0].sharers

    def __str__(self) -> str:
        """`4 tenants: processors 0 | 1 (each shared by 2), 5.64 GiB each`."""
        processors = " | ".join(map(format_list, self.parts))
        shared = f" ({'each ' if len(self.parts) > 1 else ''}shared by {self.sharers})" if self.sharers > 1 else ""
        memory = f"{gib(self.slices[0].memory_bytes)}{' each' if len(self.slices) > 1 else ''}"
        return f"{many(len(self.slices), 'tenant')}: processors {processors}{shared}, {memory}"


def tenants_by_default(machine: Machine, users: int | None) -> int:
    """Return how many tenants a launch has: as many as asked, else one per accelerator, else at most two."""
    return users if users is not None else len(machine.accelerators) or min(2, _processor_limit(machine))


def ranks_of_all(machine: Machine, made: Plan) -> int:
    """Return N of a launch that owns the machine: an accelerator each, else a tenant's processors, shared or not."""
    return len(machine.accelerators) or len(made.parts)


def plan(
    machine: Machine, tenants: int, *, policy: Policy = "cores", mems: Mems = "local", reserve_bytes: int | None = None
) -> Plan:
    """Return equal slices for `tenants`; raise CotenantError where the memory does not suffice.

    `cores` gives whole physical cores near each tenant's device, `contiguous` consecutive logical ids. Where there are
    fewer processors than tenants, equally many tenants share each part of them. Memory comes from the nodes of a
    slice's processors, with `mems="all"` from every node.
    `reserve_bytes` stays with the host, by default 3 % of the memory and at least 1 GiB.
    """
    if tenants < 1:
        raise CotenantError(f"{tenants} tenants cannot be planned.", "Use --users 1 or more.")
    limit = _processor_limit(machine)
    devices, idle = share_devices(machine.accelerators, tenants)
    assignment = _assignment(machine, limit, policy, devices)
    reserve = reserve_of(machine, reserve_bytes)
    nodes = [memory_nodes(machine, processors, mems) for processors in assignment]
    memory = equal_share(machine, nodes, reserve)
    sharers = tenants // len(set(assignment))
    slices = tuple(Slice(i, assignment[i], nodes[i], memory, devices[i], tenants, sharers) for i in range(tenants))
    findings = [
        *_quota_findings(machine, limit),
        *_processor_findings(machine, slices, limit),
        *_memory_findings(machine, slices, reserve),
        *_device_findings(machine, slices, idle),
    ]
    return Plan(slices, _unused(machine, slices), idle, reserve, tuple(findings))


def plan_whole(machine: Machine, reserve_bytes: int | None = None) -> Plan:
    """Return one slice with everything usable but the reserve, for a launch that owns the machine."""
    limit = _processor_limit(machine)
    processors = everything(machine.processors, limit)
    nodes = memory_nodes(machine, processors, "all")
    reserve = reserve_of(machine, reserve_bytes)
    whole = Slice(0, processors, nodes, equal_share(machine, [nodes], reserve), machine.accelerators)
    findings = (*_quota_findings(machine, limit), *_partition_findings(machine, [whole]))
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
    return tuple(assign(processors, limit, wanted_nodes(processors, devices)))


def _processor_limit(machine: Machine) -> int:
    usable = len(machine.processors)
    quota = machine.quota_processors
    return usable if quota is None else max(1, min(usable, int(quota)))


def _assignment(machine: Machine, limit: int, policy: Policy, devices: Sequence[Devices]) -> list[Cpus]:
    """Return the processors of each tenant, who has these devices."""
    wanted = wanted_nodes(machine.processors, devices)
    if len(devices) > limit:
        share = share_consecutive if policy == "contiguous" else share_cores
        return share(machine.processors, limit, wanted)
    if policy == "contiguous":
        return _consecutive(machine, limit // len(devices), len(devices))
    return assign(machine.processors, limit, wanted)


def _consecutive(machine: Machine, size: int, tenants: int) -> list[Cpus]:
    ids = sorted(processor.id for processor in machine.processors)
    return [tuple(ids[tenant * size : (tenant + 1) * size]) for tenant in range(tenants)]


def _unused(machine: Machine, slices: Sequence[Slice]) -> tuple[int, ...]:
    given = set(chain.from_iterable(slice_.processors for slice_ in slices))
    return tuple(sorted(processor.id for processor in machine.processors if processor.id not in given))


def _quota_findings(machine: Machine, limit: int) -> Iterator[Finding]:
    """Say that a quota of processor time leaves only `limit` processors to give out."""
    usable = len(machine.processors)
    if limit < usable:
        yield warning(
            f"A quota of {machine.quota_processors:g} leaves {limit} of {usable} processors to give out.",
            "Raise cpu.max (on v1 cpu.cfs_quota_us) of the surrounding cgroup.",
            rule="processor_quota",
        )


def _processor_findings(machine: Machine, slices: Sequence[Slice], limit: int) -> Iterator[Finding]:
    """Say what is unused, shared between tenants, unlike from tenant to tenant, or far apart."""
    each, parts = len(slices[0].processors), len({slice_.processors for slice_ in slices})
    if parts < len(slices):
        each_part = f"{many(each, 'processor')} for every {slices[0].sharers} of them"
        yield info(
            f"{len(slices)} tenants share {many(parts * each, 'processor')}"
            f"{f': {each_part}' if parts > 1 else ', all the same'}.",
            f"Use --users {limit} or fewer for processors of their own.",
            rule="processors_shared",
        )
    elif spare := limit - each * parts:
        yield info(
            f"{spare} of {limit} processors stay unused: {len(slices)} tenants get {each} each.",
            "Choose --users so that the cores of every node divide evenly.",
            rule="processors_unused",
        )
    by_id = {processor.id: processor for processor in machine.processors}
    parts_of: defaultdict[int, set[Cpus]] = defaultdict(set)
    for slice_ in slices:
        for processor in slice_.processors:
            parts_of[by_id[processor].core].add(slice_.processors)
    cut = [cpus for cpus in parts_of.values() if len(cpus) > 1]
    if split := [{slice_.tenant for slice_ in slices if slice_.processors in cpus} for cpus in cut]:
        yield warning(
            f"{len(split)} physical cores serve more than one tenant ({_tenants(set().union(*split))}).",
            "Use fewer --users, and not --plan contiguous.",
            rule="siblings_split",
        )
    yield from _mixture_findings(machine, slices)
    nodes_of = {slice_.tenant: {by_id[p].node for p in slice_.processors} for slice_ in slices}
    if len(slices) > 1 and (straddling := [tenant for tenant, nodes in nodes_of.items() if len(nodes) > 1]):
        yield warning(
            f"The processors of {_tenants(straddling)} lie on more than one NUMA node.",
            "Choose --users as a multiple of the number of nodes.",
            rule="nodes_straddled",
        )


def _memory_findings(machine: Machine, slices: Sequence[Slice], reserve: int) -> Iterator[Finding]:
    """Say that nodes of unequal size leave memory to nobody."""
    available = machine.memory_bytes - reserve
    spare = available - len(slices) * slices[0].memory_bytes
    if spare * 100 > available * _UNEVEN_PERCENT:
        yield info(
            f"{gib(spare)} of {gib(available)} stay unused: all tenants get what the scarcest node gives.",
            "--mems all lets every tenant use every node's memory.",
            rule="memory_unused",
        )


def _device_findings(machine: Machine, slices: Sequence[Slice], idle: Sequence[Accelerator]) -> Iterator[Finding]:
    """Say which devices are shared, idle, unlike or far from their tenant's processors."""
    total = len(machine.accelerators)
    if 0 < total < len(slices):
        yield warning(
            f"{len(slices)} tenants share {many(total, 'device')} in turn.",
            f"Use --users {total} for a device each.",
            rule="devices_shared",
        )
    if idle:
        yield info(
            f"{len(idle)} of {total} devices stay idle: they do not divide by {len(slices)} tenants.",
            f"Use --users {total} for one each.",
            rule="devices_idle",
        )
    yield from _partition_findings(machine, slices)
    if len(names := sorted({device.name for device in machine.accelerators})) > 1:
        yield warning(f"The devices are not alike: {', '.join(names)}.", rule="devices_differ")
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


def _partition_findings(machine: Machine, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Say that CUDA enumerates one MIG instance in a process (NVIDIA, MIG User Guide), whatever it is shown."""
    most = max(sum(device.is_partition for device in slice_.accelerators) for slice_ in slices)
    if most > 1:
        yield warning(
            f"A process opens one MIG instance, and a tenant here has {most}: it uses the first.",
            f"Use --users {len(machine.accelerators)} for an instance each.",
            rule="partitions_unused",
        )


def _mixture_findings(machine: Machine, slices: Sequence[Slice]) -> Iterator[Finding]:
    by_tenant = mixtures(machine.processors, [slice_.processors for slice_ in slices])
    if all(mixture == by_tenant[0] for mixture in by_tenant):
        return
    unequal = len({mixture.total() for mixture in by_tenant}) > 1
    yield warning(
        f"The tenants' {len(slices[0].processors)} processors each are of "
        f"{'unequally many physical cores' if unequal else 'unlike physical cores'}.",
        "Compare tenants of such a machine with care, or choose --users so that each sort of core divides.",
        rule="cores_uneven",
    )


def _tenants(tenants: Iterable[int]) -> str:
    ids = set(tenants)
    return f"tenant{'s' if len(ids) > 1 else ''} {format_list(ids)}"
