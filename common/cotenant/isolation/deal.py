"""Equal hands of a machine's processors: whole cores, each on one NUMA node where that costs little. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from cotenant.machine.topology import Processor

Core = tuple[int, ...]
"""The usable processors of one physical core, ascending. No core serves two hands while cores suffice."""
Cores = dict[int, list[Core]]
"""The cores of each node."""

_WORTH = 8
"""For one node, and for whole cores, a hand gives up at most one in so many of its processors."""


def cores_by_node(processors: Iterable[Processor]) -> Cores:
    """Return the cores of each node, nodes and cores ascending, each core with the given processors only."""
    members: dict[int, list[Processor]] = {}
    for processor in sorted(processors, key=lambda processor: processor.id):
        members.setdefault(processor.core, []).append(processor)
    by_node: Cores = {}
    for core in members.values():
        by_node.setdefault(core[0].node, []).append(tuple(processor.id for processor in core))
    return dict(sorted(by_node.items()))


def deal(processors: Sequence[Processor], limit: int, wanted: Sequence[int | None]) -> list[Core]:
    """Return a hand for each entry of `wanted`, the node it should lie on: equally many, ascending.

    At most `limit` are dealt and at least one for each hand: `len(wanted) <= limit` is the caller's care. The
    hands are the largest that come out, or a little smaller (1/8) where that makes them of one node each, or
    of whole cores.
    """
    assert 1 <= len(wanted) <= limit <= len(processors)
    cores = cores_by_node(processors)
    if sum(map(len, cores.values())) < len(wanted):
        # Fewer than one core each: the logical processors, siblings next to each other.
        cores = {node: [(p,) for core in group for p in core] for node, group in cores.items()}
    best: list[Core] = []
    best_merit = (False, False)
    largest = 0
    for size in range(limit // len(wanted), 0, -1):
        if size * _WORTH < largest * (_WORTH - 1):
            break
        for whole in (True, False):
            hands, local = _place(cores, size, wanted, whole)
            if not hands:
                continue
            largest = largest or size
            if not best or (local, whole) > best_merit:
                best, best_merit = hands, (local, whole)
        if best_merit == (True, True):
            break
    return best


def _place(cores: Cores, size: int, wanted: Sequence[int | None], whole: bool) -> tuple[list[Core] | None, bool]:
    """Return `size` processors for each tenant, if that many come out, and whether each lies on one node."""
    homes = _homes(cores, size, wanted, whole)
    hands: dict[int, Core] = {}
    free: Cores = {}
    for node, group in cores.items():
        local = [tenant for tenant, home in enumerate(homes) if home == node]
        dealt = _fill(group, len(local), size, whole)
        if dealt is None:
            return None, False
        hands |= dict(zip(local, dealt, strict=True))
        free[node] = _left(group, dealt)
    straddlers = [tenant for tenant, home in enumerate(homes) if home is None]
    for tenant in straddlers:
        near = sorted(free, key=lambda node: (node != wanted[tenant], -sum(map(len, free[node])), node))
        dealt = _fill([core for node in near for core in free[node]], 1, size, whole)
        if dealt is None:
            return None, False
        hands[tenant] = dealt[0]
        free = {node: _left(group, dealt) for node, group in free.items()}
    return [hands[tenant] for tenant in range(len(wanted))], not straddlers


def _homes(cores: Cores, size: int, wanted: Sequence[int | None], whole: bool) -> list[int | None]:
    """Return each tenant's node: its device's while there is room, else the roomiest; None to straddle."""
    room = {node: _capacity(group, len(wanted), size, whole) for node, group in cores.items()}
    homes: list[int | None] = [None] * len(wanted)
    for tenant, node in enumerate(wanted):
        if node is not None and room[node]:
            homes[tenant] = node
            room[node] -= 1
    others = [tenant for tenant, home in enumerate(homes) if home is None]
    picked: list[int] = []
    for _ in others:
        roomiest = min(room, key=lambda node: (-room[node], node))
        if not room[roomiest]:
            break
        picked.append(roomiest)
        room[roomiest] -= 1
    for tenant, node in zip(others, sorted(picked), strict=False):
        homes[tenant] = node
    return homes


def _capacity(cores: list[Core], tenants: int, size: int, whole: bool) -> int:
    """Return how many hands of `size` processors these cores make."""
    most = min(tenants, len(cores), sum(map(len, cores)) // size)
    return next((count for count in range(most, 0, -1) if _fill(cores, count, size, whole) is not None), 0)


def _fill(cores: list[Core], count: int, size: int, whole: bool) -> list[Core] | None:
    """Return `count` hands of `size` processors from cores of their own, None where they do not come out.

    Every hand gets the same mixture of wide and narrow cores as far as that divides, neighbours together.
    Unless `whole`, the last core of a hand may be wider than what is missing; the rest of it stays unused.
    """
    if not count:
        return []
    hands: list[list[int]] = [[] for _ in range(count)]
    rest: list[Core] = []
    for width in sorted({len(core) for core in cores}, reverse=True):
        group = [core for core in cores if len(core) == width]
        each = min(len(group) // count, (size - len(hands[0])) // width)
        for i, hand in enumerate(hands):
            hand.extend(chain.from_iterable(group[i * each : (i + 1) * each]))
        rest += group[each * count :]
    for hand in hands:
        for core in tuple(rest):
            if len(core) <= size - len(hand):
                hand.extend(core)
                rest.remove(core)
        if len(hand) < size and not whole and rest:
            core = min(rest, key=lambda core: (len(core), core))
            hand.extend(core[: size - len(hand)])
            rest.remove(core)
        if len(hand) < size:
            return None
    return [tuple(sorted(hand)) for hand in hands]


def _left(cores: list[Core], hands: Iterable[Core]) -> list[Core]:
    taken = set(chain.from_iterable(hands))
    return [core for core in cores if taken.isdisjoint(core)]
