"""`cotenant plan`: this machine and who would get what of it, as a picture or as JSON. Nothing is made or started."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from cotenant.commands.flags import Parser, add_format, add_slice_flags
from cotenant.commands.output import tell_document
from cotenant.errors import EXIT_PASSED
from cotenant.isolation.assignment import cores_by_node
from cotenant.isolation.choose import Chosen, choose_backend
from cotenant.isolation.memory_shares import Mems
from cotenant.isolation.plan import Plan, Policy, plan, tenants_by_default
from cotenant.isolation.plan_findings import cache_findings
from cotenant.machine.accelerators import Accelerator, visible_variables
from cotenant.machine.cpu import Cache, last_level_caches
from cotenant.machine.limits import cgroup_mounts
from cotenant.machine.topology import Machine, discover
from cotenant.procfs import format_list

SCHEMA = "cotenant-plan-2"
"""The document's version; its number grows when a field changes its meaning or goes."""

Document = dict[str, Any]


def main(argv: Sequence[str]) -> int:
    """Show the plan. Returns 0; raises CotenantError where slices cannot be planned or isolated as asked."""
    given = parser().parse_words(argv)
    machine = discover()
    chosen = choose_backend(given.isolation, cgroup_mounts(), given.cgroup_base)
    tenants = tenants_by_default(machine, given.users)
    made = plan(
        machine,
        tenants,
        slices=given.slices,
        share=given.share,
        policy=given.plan,
        mems=given.mems,
        reserve_bytes=given.reserve,
    )
    caches = last_level_caches(processor.id for processor in machine.processors)
    document = document_of(machine, made, chosen, given.plan, given.mems, caches)
    if given.format == "json":
        tell_document(document)
        return EXIT_PASSED
    from cotenant.report.plan_picture import print_plan

    print_plan(document)
    return EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `plan`."""
    parser = Parser("plan", "Show this machine and the slice of each tenant. Nothing is made, nothing is started.")
    add_slice_flags(parser)
    add_format(parser)
    return parser


def document_of(
    machine: Machine, made: Plan, chosen: Chosen, policy: Policy, mems: Mems, caches: Iterable[Cache] = ()
) -> Document:
    """Return the document of the picture and of `--json`. Lists as text are in the kernel's format (`0-15,128-143`)."""
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
        "policy": policy,
        "mems": mems,
        "backend": chosen.backend.name,
        "unenforced": list(chosen.backend.unenforced),
        "tenants": tenants,
        "boxes": _boxes(machine, made, devices),
        "homeless_devices": devices.get(-1, []),
        "findings": [
            asdict(finding) for finding in (*chosen.findings, *made.findings, *cache_findings(made.slices, caches))
        ],
    }


def _labels(devices: Sequence[Accelerator]) -> dict[Accelerator, str]:
    """Return each device's number on this host; partitions of one count on behind a dot."""
    labels: dict[Accelerator, str] = {}
    parts: defaultdict[int, int] = defaultdict(int)
    for device in devices:
        labels[device] = f"{device.index}.{parts[device.index]}" if device.is_partition else str(device.index)
        parts[device.index] += 1
    return labels


def _devices(machine: Machine, made: Plan, labels: dict[Accelerator, str]) -> dict[int, list[Document]]:
    """Return each node's devices with their tenants; under -1 those of an unknown node, where there are several."""
    nodes = {node.id for node in machine.nodes} | {processor.node for processor in machine.processors}
    devices: defaultdict[int, list[Document]] = defaultdict(list)
    for device in machine.accelerators:
        # A device that lies nowhere in particular lies on the only node there is.
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
