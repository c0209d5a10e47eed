"""The host's NUMA nodes: their processors and memory. Memory of a device is no RAM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cotenant.procfs import fields, kilobytes, numbered, read_list, read_text, to_int, to_list

_NODE = "sys/devices/system/node"


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node with memory that the caller may use."""

    id: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes with memory that the caller may use, and the nodes of each processor's memory."""

    usable: tuple[NumaNode, ...]
    home_of: Mapping[int, int]
    """The node of each processor: the first of several that list it (fake ones overlap)."""
    memory_of: Mapping[int, tuple[int, ...]]
    """The nodes of each home's memory, if it is not the home alone."""


def numa_nodes(root: Path, host_bytes: int) -> Nodes:
    """Return the nodes below `root`; a host without any has one with all of its `host_bytes`."""
    listing: defaultdict[int, list[int]] = defaultdict(list)
    every: list[NumaNode] = []
    of_devices = device_nodes(root)
    for number in numbered(root / _NODE, "node"):
        if number in of_devices:
            continue
        for processor in read_list(root / _NODE / f"node{number}/cpulist"):
            listing[processor].append(number)
        every.append(NumaNode(number, node_bytes(root, number, "MemTotal")))
    if not every:
        return Nodes((NumaNode(0, host_bytes),), {}, {})
    if len(every) == 1 and host_bytes:
        # In a virtual machine that gains or loses memory while it runs, the node's own number may lag behind.
        every = [NumaNode(every[0].id, host_bytes)]
    allowed = to_list(fields(read_text(root / "proc/self/status"), ":").get("Mems_allowed_list", ""))
    usable = tuple(node for node in every if node.id in allowed) or tuple(every)
    filled = [node.id for node in usable if node.memory_bytes]
    alike = {lists[0]: lists for lists in listing.values()}
    memory_of = {home: _nearest(root, home, lists, filled) for home, lists in alike.items()}
    return Nodes(
        usable,
        {processor: lists[0] for processor, lists in listing.items()},
        {home: nodes for home, nodes in memory_of.items() if nodes and nodes != (home,)},
    )


def _nearest(root: Path, home: int, lists: Iterable[int], filled: list[int]) -> tuple[int, ...]:
    """Return the nodes of `lists` with memory; if there are none, the nearest nodes with memory."""
    if local := tuple(node for node in lists if node in filled):
        return local
    # The kernel lists a node's distances in the order of the online nodes.
    distances = read_text(root / _NODE / f"node{home}/distance").split()
    far = dict(zip(numbered(root / _NODE, "node"), map(to_int, distances), strict=False))
    least = min((far.get(node) or 0 for node in filled), default=0)
    return tuple(node for node in filled if (far.get(node) or 0) == least)


def device_nodes(root: Path = Path("/")) -> frozenset[int]:
    """Return the nodes that are the memory of NVIDIA devices (GH200, POWER9), as the driver names them."""
    files = (root / "proc/driver/nvidia/gpus").glob("*/numa_status")
    named = {to_int(fields(read_text(file), ":").get("Node", "")) for file in files}
    return frozenset(node for node in named if node is not None and not read_list(root / _NODE / f"node{node}/cpulist"))


def node_bytes(root: Path, number: int, name: str) -> int:
    """Return a number of a node's meminfo, `MemTotal` or `MemFree`; 0 if it is missing."""
    values = fields(read_text(root / _NODE / f"node{number}/meminfo"), ":")
    return kilobytes(values.get(f"Node {number} {name}", ""))
