"""Plans slices on this machine: each tenant's part, its picture and its document. Nothing is made or started."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import count
from typing import Any

from cotenant.choices import IsolationKind
from cotenant.errors import CotenantError
from cotenant.finding import Finding
from cotenant.isolation.choose import Chosen, choose_backend
from cotenant.isolation.cores import cores_by_node
from cotenant.isolation.device_modes import ShareMode, share_mode
from cotenant.isolation.memory_shares import Mems
from cotenant.isolation.plan import Plan, Policy, tenants_by_default
from cotenant.isolation.plan import plan as planned
from cotenant.isolation.plan_findings import cache_findings
from cotenant.isolation.slice import Slice
from cotenant.machine.accelerators import Accelerator, visible_variables
from cotenant.machine.limits import cgroup_mounts
from cotenant.machine.topology import Machine, Processor, discover
from cotenant.procfs import format_list

SCHEMA = "cotenant-plan-2"
"""The document's version; its number grows if a field changes its meaning or is removed."""

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class MachinePlan:
    """This machine, and the slice of each tenant. Printed, and in a notebook, it is the picture of `cotenant plan`."""

    machine: Machine
    """Processors, memory, nodes and accelerators, as they are."""
    plan: Plan
    """The slices, and the resources without a tenant."""
    chosen: Chosen
    """The backend that would enforce them."""
    policy: Policy
    """The processors that slices take: whole cores first, or consecutive numbers."""
    mems: Mems
    """The nodes of a slice's memory: its processors' own, or all."""

    @property
    def slices(self) -> tuple[Slice, ...]:
        """The slice of each tenant: processors, nodes, memory in bytes, accelerators."""
        return self.plan.slices

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Limits that slices lack here, and caches that they share, each with a remedy."""
        return (*self.chosen.findings, *self.plan.findings, *cache_findings(self.machine, self.slices))

    @property
    def document(self) -> Document:
        """The document of `cotenant plan --json`; lists as text are in the kernel's format (`0-15,128-143`)."""
        machine, made = self.machine, self.plan
        labels = _labels(machine.accelerators)
        devices = _devices(machine, made, labels)
        core_of = {processor.id: processor.core for processor in machine.processors}
        part_of = {processors[0]: position for position, processors in enumerate(made.parts)}
        cores_of = {processors[0]: len({core_of[number] for number in processors}) for processors in made.parts}
        tenants = [
            {
                "tenant": piece.tenant,
                "processors": format_list(piece.processors),
                "processor_total": len(piece.processors),
                "part": part_of[piece.part],
                "sharers": piece.sharers,
                "core_total": cores_of[piece.part],
                "nodes": format_list(piece.nodes),
                "memory_bytes": piece.memory_bytes,
                "devices": [labels[device] for device in piece.accelerators],
                "environment": visible_variables(piece.accelerators),
            }
            for piece in made.slices
        ]
        promised = sum(piece.memory_bytes for piece in made.slices)
        return {
            "schema": SCHEMA,
            "hostname": machine.hostname,
            "model_name": machine.model_name,
            "processors_online": machine.processor_total,
            "processors_usable": len(machine.processors),
            "quota_processors": machine.quota_processors,
            "processors_unused": format_list(made.unused_processors),
            "memory_bytes": machine.memory_bytes,
            "reserve_bytes": made.reserve_bytes,
            "memory_unused_bytes": machine.memory_bytes - made.reserve_bytes - promised,
            "policy": self.policy,
            "mems": self.mems,
            "backend": self.chosen.backend.name,
            "unenforced": list(self.chosen.backend.unenforced),
            "tenants": tenants,
            "boxes": _boxes(machine, made, devices),
            "homeless_devices": devices.get(-1, []),
            "findings": [asdict(finding) for finding in self.findings],
        }

    def __str__(self) -> str:
        from cotenant.report.plan_picture import plan_text  # rich is not needed for the plan itself

        return plan_text(self.document)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def plan(
    users: int | None = None,
    *,
    slices: int | None = None,
    share: str | ShareMode | None = None,
    isolation: IsolationKind = "auto",
    policy: Policy = "cores",
    mems: Mems = "local",
    reserve_bytes: int | None = None,
    cgroup_base: str | None = None,
) -> MachinePlan:
    """Plan slices for a number of users on this machine, as `cotenant plan` does; nothing is made or started.

    `users` is by default one for each accelerator, or up to two without any. There are fewer `slices` than users if
    several share one, and `share` says how they share a device (`time`, `mps`, `mps:25`). `isolation` enforces
    slices, `policy` gives whole cores first or consecutive processors, `mems` memory of a slice's own nodes or of all.
    `reserve_bytes` stay with the host, by default 3 % of its memory and 1 GiB at least. `cgroup_base` is the parent of
    the cgroups.

    Raises CotenantError if slices cannot be planned so, IsolationError if they are not available.

        >>> made = cotenant.plan(users=1, isolation="none")
        >>> [(slice.tenant, slice.sharers) for slice in made.slices]
        [(0, 1)]
    """
    machine = discover()
    chosen = choose_backend(isolation, cgroup_mounts(), cgroup_base)
    made = planned(
        machine,
        tenants_by_default(machine, users),
        slices=slices,
        share=_mode(share),
        policy=policy,
        mems=mems,
        reserve_bytes=reserve_bytes,
    )
    return MachinePlan(machine, made, chosen, policy, mems)


def _mode(share: str | ShareMode | None) -> ShareMode | None:
    if not isinstance(share, str):
        return share
    try:
        return share_mode(share)
    except ValueError as error:
        raise CotenantError(f"share: {error}.", "docs/sharing.md has the modes.") from None


def _labels(devices: Sequence[Accelerator]) -> dict[Accelerator, str]:
    """Return each device's number on this host; partitions of a device are numbered after a dot."""
    parts: defaultdict[int, Iterator[int]] = defaultdict(count)
    return {
        device: f"{device.index}.{next(parts[device.index])}" if device.is_partition else str(device.index)
        for device in devices
    }


def _devices(machine: Machine, made: Plan, labels: dict[Accelerator, str]) -> dict[int, list[Document]]:
    """Return each node's devices with their tenants; under -1 devices of an unknown node if there are several nodes."""
    nodes = {node.id for node in machine.nodes} | {processor.node for processor in machine.processors}
    devices: defaultdict[int, list[Document]] = defaultdict(list)
    for device in machine.accelerators:
        # A device of an unknown node is on the only node, if there is just one.
        home = device.node if device.node in nodes else -1 if len(nodes) > 1 else min(nodes)
        tenants = [piece.tenant for piece in made.slices if device in piece.accelerators]
        devices[home].append(asdict(device) | {"label": labels[device], "tenants": tenants})
    return devices


def _boxes(machine: Machine, made: Plan, devices: dict[int, list[Document]]) -> list[Document]:
    """Return a box for each part of a socket on one node, and one for each node without processors.

    The memory and devices of a node with several sockets are in its first box.
    """
    owners: defaultdict[int, list[int]] = defaultdict(list)
    for piece in made.slices:
        for number in piece.processors:
            owners[number].append(piece.tenant)
    memory_of = {node.id: node.memory_bytes for node in machine.nodes}
    local: defaultdict[tuple[int, int], list[Processor]] = defaultdict(list)
    for processor in machine.processors:
        local[processor.package, processor.node].append(processor)
        # Nodes that overlap have the same processors.
        if processor.node in processor.memory_nodes:
            overlapping = (memory_of.pop(node, 0) for node in processor.memory_nodes if node != processor.node)
            memory_of[processor.node] = memory_of.get(processor.node, 0) + sum(overlapping)
    places: list[tuple[int | None, int]] = sorted(local)
    shown = {node for _, node in places}
    places += [(None, node) for node, size in memory_of.items() if node not in shown and (size or devices.get(node))]
    boxes = []
    for package, node in places:
        there = [] if package is None else local[package, node]
        cores = [
            {
                "processors": core.processors,
                "kind": core.kind,
                "tenants": [owners[number] for number in core.processors],
            }
            for core in cores_by_node(there).get(node, ())
        ]
        boxes.append(
            {
                "package": package,
                "node": node,
                "memory_bytes": memory_of.pop(node, 0),
                "cores": cores,
                "devices": devices.pop(node, []),
            }
        )
    return boxes
