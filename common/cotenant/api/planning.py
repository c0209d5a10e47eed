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
from cotenant.isolation.assignment import cores_by_node
from cotenant.isolation.choose import Chosen, choose_backend
from cotenant.isolation.device_modes import ShareMode, share_mode
from cotenant.isolation.memory_shares import Mems
from cotenant.isolation.plan import Plan, Policy, tenants_by_default
from cotenant.isolation.plan import plan as planned
from cotenant.isolation.plan_findings import cache_findings
from cotenant.isolation.slice import Slice
from cotenant.machine.accelerators import Accelerator, visible_variables
from cotenant.machine.cpu import Cache, last_level_caches
from cotenant.machine.limits import cgroup_mounts
from cotenant.machine.topology import Machine, discover
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
    """Whether slices take whole cores first, or consecutive processors."""
    mems: Mems
    """Whether memory comes from the nodes of a slice's processors, or from all."""
    caches: tuple[Cache, ...] = ()
    """The last-level caches, each with its processors."""

    @property
    def slices(self) -> tuple[Slice, ...]:
        """The slice of each tenant: processors, nodes, memory in bytes, accelerators."""
        return self.plan.slices

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Limits that slices lack here, and caches that they share, each with a remedy."""
        return (*self.chosen.findings, *self.plan.findings, *cache_findings(self.slices, self.caches))

    @property
    def document(self) -> Document:
        """The document of `cotenant plan --json`; lists as text are in the kernel's format (`0-15,128-143`)."""
        machine, made = self.machine, self.plan
        labels = _labels(machine.accelerators)
        devices = _devices(machine, made, labels)
        core_of = {processor.id: processor.core for processor in machine.processors}
        tenants = [
            {
                "tenant": piece.tenant,
                "processors": format_list(piece.processors),
                "processor_total": len(piece.processors),
                "part": made.parts.index(piece.processors),
                "sharers": piece.sharers,
                "core_total": len({core_of[number] for number in piece.processors}),
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
    caches = last_level_caches(processor.id for processor in machine.processors)
    return MachinePlan(machine, made, chosen, policy, mems, tuple(caches))


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
    """Return each node's devices with their tenants; under -1 those of an unknown node if there are several nodes."""
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

    A node of several sockets has its devices in the first.
    """
    owners: defaultdict[int, list[int]] = defaultdict(list)
    for piece in made.slices:
        for number in piece.processors:
            owners[number].append(piece.tenant)
    memory_of = {node.id: node.memory_bytes for node in machine.nodes}
    sockets = sorted({(processor.package, processor.node) for processor in machine.processors})
    shown = {node for _, node in sockets}
    bare = [node for node in memory_of if node not in shown and (memory_of[node] or devices.get(node))]
    boxes = []
    for package, node in [*sockets, *((None, node) for node in bare)]:
        local = [
            processor for processor in machine.processors if (processor.package, processor.node) == (package, node)
        ]
        cores = [
            asdict(core) | {"tenants": [owners[number] for number in core.processors]}
            for core in cores_by_node(local).get(node, ())
        ]
        boxes.append(
            {
                "package": package,
                "node": node,
                "memory_bytes": memory_of.get(node, 0),
                "cores": cores,
                "devices": devices.pop(node, []),
            }
        )
    return boxes
