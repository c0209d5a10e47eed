"""The plan's accelerators: the devices of each tenant, and the node that each tenant should be on for them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cotenant.machine.accelerators import Accelerator
from cotenant.machine.topology import Processor

Devices = tuple[Accelerator, ...]


def share_devices(devices: Devices, tenants: int) -> tuple[list[Devices], Devices]:
    """Return each tenant's devices and the remaining ones; with fewer devices than tenants, one each in turn."""
    if len(devices) < tenants:
        return [devices[i % len(devices) :][:1] if devices else () for i in range(tenants)], ()
    per_tenant = len(devices) // tenants
    devices = _groups_of(per_tenant, devices)
    return [devices[i * per_tenant : (i + 1) * per_tenant] for i in range(tenants)], devices[per_tenant * tenants :]


def _groups_of(size: int, devices: Devices) -> Devices:
    """Return the devices in groups of `size` on one node, as far as possible; the rest last."""
    if size == 1:
        return devices
    grouped: list[Accelerator] = []
    rest: list[Accelerator] = []
    for node in sorted({device.node for device in devices}):
        local = [device for device in devices if device.node == node]
        even = len(local) // size * size
        grouped += local[:even]
        rest += local[even:]
    return (*grouped, *rest)


def wanted_nodes(processors: Iterable[Processor], devices: Iterable[Devices]) -> list[int | None]:
    """Return for each tenant the node with processors that has most of its devices; None without one."""
    nodes = {processor.node for processor in processors}
    return [most_frequent(device.node for device in group if device.node in nodes) for group in devices]


def most_frequent(nodes: Iterable[int]) -> int | None:
    """Return the most frequent node, the lowest on a tie; None without any."""
    counts = Counter(nodes)
    return min(counts, key=lambda node: (-counts[node], node)) if counts else None
