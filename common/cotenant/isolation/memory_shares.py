"""The plan's memory: the host's reserve, the nodes of a slice, and equal bytes for all. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from cotenant.errors import CotenantError
from cotenant.machine.topology import Machine
from cotenant.text import gib, many

Mems = Literal["local", "all"]
Nodes = tuple[int, ...]

PAGE_BYTES = 4096
LEAST_BYTES = 16 << 20
"""Below this not even a Python that imports nothing begins."""
_RESERVE_BYTES = 1 << 30
_RESERVE_PERCENT = 3


def reserve_of(machine: Machine, requested: int | None) -> int:
    """Return the bytes kept from tenants: as requested, else 3 % and at least 1 GiB. Raises CotenantError."""
    reserve = max(_RESERVE_BYTES, machine.memory_bytes * _RESERVE_PERCENT // 100) if requested is None else requested
    if not 0 <= reserve < machine.memory_bytes:
        raise CotenantError(
            f"A reserve of {gib(reserve)} does not fit {gib(machine.memory_bytes)} of memory.",
            "Raise the memory limit of the surrounding cgroup, or ask for a smaller reserve.",
        )
    return reserve


def memory_nodes(machine: Machine, processors: Sequence[int], mems: Mems = "local") -> Nodes:
    """Return the nodes a slice's memory comes from: those of its processors, or all that have memory.

    Local ones that have none leave all; `mems` says which are wanted.
    """
    ids = set(processors)
    own = {processor.node for processor in machine.processors if processor.id in ids}
    filled = {node.id for node in machine.nodes if node.memory_bytes}
    local = own & filled if mems == "local" else set()
    return tuple(sorted(local or filled or own))


def equal_share(machine: Machine, nodes_of: Sequence[Nodes], reserve: int) -> int:
    """Return the bytes of every slice, in whole pages: the rest of RAM and of the scarcest nodes.

    `nodes_of` are each slice's nodes; each node bears its part of the reserve. The slices fit if those inside any
    set of nodes fit that set (Hall, "On Representatives of Subsets", 1935); only unions of overlapping slices' nodes
    can be tighter than their parts. Raises CotenantError where no program would begin.
    """
    shares = [(machine.memory_bytes - reserve) // len(nodes_of)]
    bytes_of = {node.id: node.memory_bytes for node in machine.nodes}
    everything = sum(bytes_of.values())
    for union in _unions(nodes_of):
        local = sum(bytes_of.get(node, 0) for node in union)
        # Nodes that do not say their size, or are all there are, limit no more than the machine does.
        if 0 < local < everything:
            inside = sum(union.issuperset(nodes) for nodes in nodes_of)
            shares.append((local - reserve * local // max(everything, machine.memory_bytes)) // inside)
    memory = min(shares) // PAGE_BYTES * PAGE_BYTES
    if memory < LEAST_BYTES:
        raise CotenantError(
            f"{gib(machine.memory_bytes)} of memory, {gib(reserve)} of it in reserve, leave less than "
            f"{gib(LEAST_BYTES)} for each of {many(len(nodes_of), 'user')}: no program begins in that.",
            "Use fewer --users, or a smaller reserve.",
        )
    return memory


def _unions(nodes_of: Iterable[Nodes]) -> set[frozenset[int]]:
    """Return the sets of nodes, and every union of some that overlap one another."""
    sets = {frozenset(nodes) for nodes in nodes_of}
    unions, new = set(sets), set(sets)
    while new:
        new = {union | other for union in new for other in sets if union & other} - unions
        unions |= new
    return unions
