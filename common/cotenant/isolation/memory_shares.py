"""The plan's memory: the host's reserve, the nodes of a slice, and equal bytes for all. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Literal, NamedTuple

from cotenant.errors import CotenantError
from cotenant.machine.topology import Machine
from cotenant.text import gib, many

Mems = Literal["local", "all"]
Nodes = tuple[int, ...]

PAGE_BYTES = 4096
LEAST_BYTES = 16 << 20
"""Below this not even a Python without imports starts."""
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


def memory_nodes(machine: Machine, assignment: Sequence[tuple[int, ...]], mems: Mems = "local") -> list[Nodes]:
    """Return the nodes of each slice's memory: its processors' own, or all that have memory.

    `mems` says which are wanted. If the processors' own nodes have no memory, all that have some are used.
    """
    nodes_of = {processor.id: processor.memory_nodes or (processor.node,) for processor in machine.processors}
    filled = {node.id for node in machine.nodes if node.memory_bytes}
    of_part: dict[int, Nodes] = {}
    for first, processors in {processors[0]: processors for processors in assignment}.items():
        near = set(chain.from_iterable(nodes_of[number] for number in processors))
        of_part[first] = tuple(sorted((mems == "local" and near & filled) or filled or near))
    return [of_part[processors[0]] for processors in assignment]


def equal_share(machine: Machine, nodes_of: Sequence[Nodes], reserve: int) -> int:
    """Return the bytes of every slice, in whole pages: an equal part of RAM and of the scarcest nodes.

    `nodes_of` are each slice's nodes; each node bears its part of the reserve. The slices fit if, for any set of nodes,
    the slices inside fit that set (Hall, "On Representatives of Subsets", 1935). Raises CotenantError if the share is
    too small to start a program.
    """
    share = (machine.memory_bytes - reserve) // len(nodes_of)
    everything = sum(node.memory_bytes for node in machine.nodes)
    if everything:  # else the nodes' sizes are unknown
        most = max(everything, machine.memory_bytes)
        room = {node.id: node.memory_bytes - -(-reserve * node.memory_bytes // most) for node in machine.nodes}
        slices = Counter(nodes_of)
        while (crowded := _crowded(slices, room, share)) is not None:
            share = crowded
    memory = share // PAGE_BYTES * PAGE_BYTES
    if memory < LEAST_BYTES:
        raise CotenantError(
            f"{gib(machine.memory_bytes)} of memory, {gib(reserve)} of it in reserve, leave less than "
            f"{gib(LEAST_BYTES)} for each of {many(len(nodes_of), 'user')}: too little to start a program.",
            "Use fewer --users, or a smaller reserve.",
        )
    return memory


def _crowded(slices: Mapping[Nodes, int], room: Mapping[int, int], share: int) -> int | None:
    """Return the most that some nodes can give each slice inside them, None if all slices get their `share`.

    Each slice takes from its nodes; if they are full, others that took from them move to nodes with room, by the
    shortest way (Edmonds and Karp, 1972).
    """
    free, least = dict(room), share
    taken: defaultdict[int, Counter[Nodes]] = defaultdict(Counter)
    for nodes, count in slices.items():
        need = share * count
        for node in nodes:
            moved = min(need, free[node])
            taken[node][nodes] += moved
            free[node] -= moved
            need -= moved
        while need:
            way, seen = _way(nodes, free, taken)
            if not way:
                inside = sum(slices[group] for group in seen.slices)
                least = min(least, sum(room[node] for node in seen.nodes) // inside)
                break
            moved = min(need, free[way[-1][1]], *(taken[node][mover] for (_, node), (mover, _) in pairwise(way)))
            for mover, node in way:
                taken[node][mover] += moved
            for (_, node), (mover, _) in pairwise(way):
                taken[node][mover] -= moved
            free[way[-1][1]] -= moved
            need -= moved
    return least if least < share else None


class Seen(NamedTuple):
    """Full nodes, and the slices that took from them."""

    nodes: dict[int, Nodes]
    slices: dict[Nodes, int | None]


def _way(
    nodes: Nodes, free: Mapping[int, int], taken: Mapping[int, Counter[Nodes]]
) -> tuple[list[tuple[Nodes, int]], Seen]:
    """Return the slices that move on the way to a node with room, each with its new node, and the nodes seen.

    If there is no way, no node seen has room.
    """
    seen = Seen({}, {nodes: None})
    waiting = deque([nodes])
    while waiting:
        mover = waiting.popleft()
        for node in mover:
            if node in seen.nodes:
                continue
            seen.nodes[node] = mover
            if free[node]:
                way, last = list[tuple[Nodes, int]](), node
                while True:
                    mover = seen.nodes[last]
                    way.append((mover, last))
                    if (before := seen.slices[mover]) is None:
                        return way[::-1], seen
                    last = before
            for other, amount in taken[node].items():
                if amount and other not in seen.slices:
                    seen.slices[other] = node
                    waiting.append(other)
    return [], seen
