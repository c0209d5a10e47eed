"""`cotenant plan`: this machine and who would get what of it, as a picture or as JSON. Nothing is made or started."""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

from cotenant.commands.flags import Parser, add_slice_flags
from cotenant.commands.output import tell
from cotenant.errors import EXIT_PASSED
from cotenant.isolation.assignment import cores_by_node
from cotenant.isolation.choose import Chosen, choose_backend
from cotenant.isolation.memory_shares import Mems
from cotenant.isolation.plan import Plan, Policy, Slice, plan, tenants_by_default
from cotenant.machine.accelerators import Accelerator, visible_variables
from cotenant.machine.limits import cgroup_mounts
from cotenant.machine.topology import Machine, discover
from cotenant.procfs import format_list
from cotenant.report.plan_shape import BoxShape, CoreShape, DeviceShape, PlanShape, TenantShape

VERSION = 1


def main(argv: Sequence[str]) -> int:
    """Show the plan. Returns 0; raises CotenantError for what cannot be planned or isolated as asked."""
    parser = Parser(
        prog="run.sh plan",
        allow_abbrev=False,
        description="Show this machine and the slice of each tenant. Nothing is made, nothing is started.",
    )
    add_slice_flags(parser)
    parser.add_argument("--json", action="store_true", help="for programs: the same as one JSON document")
    given = parser.parse_words(argv)
    machine = discover()
    chosen = choose_backend(given.isolation, cgroup_mounts(), given.cgroup_base)
    tenants = tenants_by_default(machine, given.users)
    made = plan(machine, tenants, policy=given.plan, mems=given.mems, reserve_bytes=given.reserve)
    shape = shape_of(machine, made, chosen, given.plan, given.mems)
    if given.json:
        tell(json.dumps(dataclasses.asdict(shape), indent=2))
        return EXIT_PASSED
    from cotenant.report.plan_picture import print_plan

    print_plan(shape)
    return EXIT_PASSED


def shape_of(machine: Machine, made: Plan, chosen: Chosen, policy: Policy, mems: Mems) -> PlanShape:
    """Return a plan and its machine as plain values."""
    labels = _labels(machine.accelerators)
    homes = {node.id for node in machine.nodes} | {processor.node for processor in machine.processors}
    # What lies nowhere in particular lies on the only node there is.
    home = {device: device.node if device.node in homes else -1 for device in machine.accelerators}
    if len(homes) == 1:
        home = dict.fromkeys(machine.accelerators, min(homes))
    devices = {device: _device(device, labels[device], made.slices) for device in machine.accelerators}
    given = len(made.slices) * made.slices[0].memory_bytes
    return PlanShape(
        version=VERSION,
        hostname=machine.hostname,
        model_name=machine.model_name,
        processors_online=machine.processor_total,
        processors_usable=len(machine.processors),
        quota_processors=machine.quota_processors,
        processors_unused=format_list(made.unused_processors),
        memory_bytes=machine.memory_bytes,
        reserve_bytes=made.reserve_bytes,
        memory_unused_bytes=machine.memory_bytes - made.reserve_bytes - given,
        policy=policy,
        mems=mems,
        backend=chosen.backend.name,
        unenforced=tuple(chosen.backend.unenforced),
        tenants=tuple(_tenant(machine, piece, labels) for piece in made.slices),
        boxes=_boxes(machine, made, {node: [devices[d] for d in home if home[d] == node] for node in homes}),
        homeless_devices=tuple(devices[device] for device in home if home[device] == -1),
        findings=(*chosen.findings, *made.findings),
    )


def _labels(devices: Sequence[Accelerator]) -> dict[Accelerator, str]:
    """Return each device's number on this host; partitions of one count on behind a dot."""
    labels: dict[Accelerator, str] = {}
    parts: defaultdict[int, int] = defaultdict(int)
    for device in devices:
        labels[device] = f"{device.index}.{parts[device.index]}" if device.is_partition else str(device.index)
        parts[device.index] += 1
    return labels


def _device(device: Accelerator, label: str, slices: Sequence[Slice]) -> DeviceShape:
    return DeviceShape(
        label=label,
        vendor=device.vendor,
        name=device.name,
        uuid=device.uuid,
        pci=device.pci,
        node=device.node,
        memory_bytes=device.memory_bytes,
        tenants=tuple(piece.tenant for piece in slices if device in piece.accelerators),
    )


def _tenant(machine: Machine, piece: Slice, labels: Mapping[Accelerator, str]) -> TenantShape:
    ids = set(piece.processors)
    return TenantShape(
        tenant=piece.tenant,
        processors=format_list(piece.processors),
        processor_total=len(piece.processors),
        core_total=len({processor.core for processor in machine.processors if processor.id in ids}),
        nodes=format_list(piece.nodes),
        memory_bytes=piece.memory_bytes,
        devices=tuple(labels[device] for device in piece.accelerators),
        environment=visible_variables(piece.accelerators),
    )


def _boxes(machine: Machine, made: Plan, devices: Mapping[int, Sequence[DeviceShape]]) -> tuple[BoxShape, ...]:
    """Return a box for each part of a socket on one node, and one for each node without processors."""
    owner = dict(chain.from_iterable(((number, piece.tenant) for number in piece.processors) for piece in made.slices))
    memory_of = {node.id: node.memory_bytes for node in machine.nodes}
    boxes: list[BoxShape] = []
    shown: set[int] = set()
    for package, node in sorted({(processor.package, processor.node) for processor in machine.processors}):
        local = [p for p in machine.processors if (p.package, p.node) == (package, node)]
        cores = tuple(
            CoreShape(core.processors, tuple(owner.get(number) for number in core.processors), core.kind)
            for core in cores_by_node(local)[node]
        )
        here = () if node in shown else tuple(devices.get(node, ()))
        boxes.append(BoxShape(package, node, memory_of.get(node, 0), cores, here))
        shown.add(node)
    bare = [node for node in machine.nodes if node.id not in shown and (node.memory_bytes or devices.get(node.id))]
    boxes += [BoxShape(None, node.id, node.memory_bytes, (), tuple(devices.get(node.id, ()))) for node in bare]
    return tuple(boxes)
