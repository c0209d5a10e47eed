"""Plans for machines that others have recorded: no socket, node, core or cache is cut that need not be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.isolation.plan import Plan, plan, plan_whole
from cotenant.machine.topology import Machine, discover
from machine.recorded import Group, Recorded, recorded


def cut(groups: Iterable[Group], parts: Sequence[Sequence[int]]) -> int:
    """Return how many parts lie in more than one of the groups."""
    owner = {number: group for group in groups for number in group}
    return sum(len({owner[number] for number in part if number in owner}) > 1 for part in parts)


def shared(groups: Iterable[Group], parts: Sequence[Sequence[int]]) -> list[Group]:
    return [group for group in groups if sum(not group.isdisjoint(part) for part in parts) > 1]


def rules(made: Plan) -> set[str]:
    return {finding.rule for finding in made.findings}


def plans(host: Recorded, machine: Machine) -> Iterator[tuple[int, Plan]]:
    """Yield plans for one to two users for each processor, as far as there is memory for them."""
    total = len(host.online)
    for users in sorted({1, 2, 3, 4, 8, max(1, total // 2), total, 2 * total}):
        with suppress(CotenantError):
            yield users, plan(machine, users)


LONG = 64
"""The most processors of a machine whose many files are written in the fast tier, too."""
HOSTS = [
    pytest.param(host, id=host.name, marks=[pytest.mark.slow] if len(host.online) > LONG else []) for host in recorded()
]


@pytest.mark.parametrize("host", HOSTS)
def test_a_recorded_machine_is_shared_out(host: Recorded, tmp_path: Path) -> None:
    width = max(map(len, host.cores))
    machine = discover(host.tree(tmp_path), environ={})
    for users, made in plans(host, machine):
        parts, size = made.parts, len(made.parts[0])
        assert {len(part) for part in parts} == {size}, users
        assert users > len(host.cores) or not shared(host.cores, parts), users
        # An eighth of a slice may be given up for one node or socket; whole cores cannot be given up in parts.
        least = -(-size * 7 // 8)
        least = -(-least // width) * width if least >= width else least
        if len(parts) > 1:
            fits = sum(len(node) // least for node in host.nodes.values()) >= len(parts)
            assert (not cut(host.nodes.values(), parts)) if fits else "nodes_straddled" in rules(made), users
            # Sockets of one kind of core each are cut for equal mixtures.
            if not any(kind >= socket for kind in host.kinds for socket in host.sockets):
                fits = sum(len(socket) // least for socket in host.sockets) >= len(parts)
                assert not (fits and cut(host.sockets, parts)), users
            caches_are_whole(host, parts, users)
            sorts_are_told(host, made, users)
        assert not made.unused_processors or "processors_unused" in rules(made), users
        memory_is_there(host, made, users)
    with suppress(CotenantError):
        assert plan_whole(machine).slices[0].memory_bytes <= sum(host.memory_bytes.values())


def caches_are_whole(host: Recorded, parts: Sequence[Sequence[int]], users: int) -> None:
    """Where slices are whole caches, or caches whole slices, none is shared or cut."""
    caches, size = [cache for cache in host.caches if len(cache) > 1], len(parts[0])
    if len({len(cache) for cache in caches}) != 1 or len(caches) < 2 or cut(host.nodes.values(), parts):
        return
    each = len(caches[0])
    assert size % each or not shared(caches, parts), users
    assert each % size or not cut(caches, parts), users


def sorts_are_told(host: Recorded, made: Plan, users: int) -> None:
    """Unlike mixtures of kinds or of sizes of cache are told; kinds that divide are dealt alike, and all of them."""
    sizes = {size for _, size in host.caches.values()}
    by_size = [frozenset().union(*(c for c, (_, own) in host.caches.items() if own == size)) for size in sizes]
    told = "cores_uneven" in rules(made)
    for sorts in (host.kinds, by_size):
        mixtures = {tuple(len(sort.intersection(part)) for sort in sorts) for part in made.parts}
        assert len(sorts) < 2 or len(mixtures) == 1 or told, users
        if sorts is host.kinds and len(sorts) > 1:
            assert len(mixtures) > 1 or not told, users
            counts = [sum(not kind.isdisjoint(core) for core in host.cores) for kind in sorts]
            assert any(count % users for count in counts) or not made.unused_processors, users


def memory_is_there(host: Recorded, made: Plan, users: int) -> None:
    """Slices have memory of their processors' nodes, as far as these have any, and no more than there is."""
    total = sum(host.memory_bytes.values())
    assert sum(piece.memory_bytes for piece in made.slices) <= total - made.reserve_bytes, users
    promised: Counter[int] = Counter()
    for piece in made.slices:
        own = {node for node, group in host.nodes.items() if not group.isdisjoint(piece.processors)}
        filled = {node for node in own if host.memory_bytes[node]}
        assert not filled or set(piece.nodes) == filled, users
        if len(piece.nodes) == 1:
            promised[piece.nodes[0]] += piece.memory_bytes
    assert all(size <= host.memory_bytes[node] for node, size in promised.items()), users
