"""Which processors each tenant gets: equally many, whole cores, on one NUMA node where that costs little. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from cotenant.machine.topology import Processor

Cpus = tuple[int, ...]
"""The processors of one tenant, ascending."""

_WORTH = 8
"""For one node, whole cores and one mixture of them, a tenant gives up at most one in so many of its processors."""
_WORTH_ALIKE = 4
"""So many where nothing but the mixture is gained: tenants of unlike cores cannot be compared at all."""


@dataclass(frozen=True, slots=True)
class Core:
    """The usable processors of one physical core, ascending. No core serves two tenants while cores suffice."""

    processors: tuple[int, ...]
    kind: str

    def __len__(self) -> int:
        return len(self.processors)


Cores = dict[int, list[Core]]
"""The cores of each node."""


def cores_by_node(processors: Iterable[Processor]) -> Cores:
    """Return the cores of each node, nodes and cores ascending, each core with the given processors only."""
    members: dict[int, list[Processor]] = {}
    for processor in sorted(processors, key=lambda processor: processor.id):
        members.setdefault(processor.core, []).append(processor)
    by_node: Cores = {}
    for core in members.values():
        by_node.setdefault(core[0].node, []).append(Core(tuple(processor.id for processor in core), core[0].kind))
    return dict(sorted(by_node.items()))


def mixtures(processors: Iterable[Processor], assignment: Iterable[Cpus]) -> list[Counter[tuple[int, str]]]:
    """Return of each tenant how many cores it has by how much of a core that is, in processors, and by kind."""
    core_of = {processor.id: (processor.core, processor.kind) for processor in processors}
    threads = [Counter(core_of[number] for number in cpus) for cpus in assignment]
    return [Counter((count, kind) for (_, kind), count in by_core.items()) for by_core in threads]


def assign(processors: Sequence[Processor], limit: int, wanted: Sequence[int | None]) -> list[Cpus]:
    """Return the processors of each tenant, equally many; `wanted` has the node that each should lie on.

    At most `limit` are assigned and at least one to each tenant: `len(wanted) <= limit` is the caller's care. They are
    as many as come out, or a few less (1/8) where that puts each tenant on one node, or on whole cores, or all on the
    same mixture of cores; for the mixture alone even less (1/4).
    """
    assert 1 <= len(wanted) <= limit <= len(processors)
    cores = cores_by_node(processors)
    if sum(map(len, cores.values())) < len(wanted):
        # Fewer than one core each: the logical processors, siblings next to each other.
        cores = {
            node: [Core((p,), core.kind) for core in group for p in core.processors] for node, group in cores.items()
        }
    best: list[Cpus] = []
    best_merit = Merit(False, False, False)
    largest = 0
    for size in range(limit // len(wanted), 0, -1):
        worth = _WORTH if best_merit.alike else _WORTH_ALIKE
        if all(best_merit) or size * worth < largest * (worth - 1):
            break
        little = size * _WORTH >= largest * (_WORTH - 1)
        for whole in (True, False):
            assignment = _place(cores, size, wanted, whole)
            if not assignment:
                continue
            largest = largest or size
            merit = merit_of(processors, assignment, whole)
            evened = merit.alike and not best_merit.alike
            if not best or (merit > best_merit and (little or evened)):
                best, best_merit = assignment, merit
    return best


class Merit(NamedTuple):
    """The merits of an assignment, the weightiest first."""

    local: bool
    whole: bool
    alike: bool


def merit_of(processors: Iterable[Processor], assignment: Sequence[Cpus], whole: bool) -> Merit:
    node_of = {processor.id: processor.node for processor in processors}
    local = all(len({node_of[number] for number in cpus}) == 1 for cpus in assignment)
    first, *others = mixtures(processors, assignment)
    return Merit(local, whole, all(other == first for other in others))


def assign_all(processors: Sequence[Processor], wanted: Sequence[int | None], size: int) -> list[Cpus]:
    """Return exactly `size` processors of whole cores for each; none where they do not come out."""
    return _place(cores_by_node(processors), size, wanted, whole=True) or []


def _place(cores: Cores, size: int, wanted: Sequence[int | None], whole: bool) -> list[Cpus] | None:
    """Return `size` processors for each tenant, None where they do not come out."""
    homes = _homes(cores, size, wanted, whole)
    cpus_of: dict[int, Cpus] = {}
    free: Cores = {}
    for node, group in cores.items():
        local = [tenant for tenant, home in enumerate(homes) if home == node]
        filled = _fill(group, len(local), size, whole)
        if filled is None:
            return None
        cpus_of |= dict(zip(local, filled, strict=True))
        free[node] = _left(group, filled)
    straddlers = [tenant for tenant, home in enumerate(homes) if home is None]
    for tenant in straddlers:
        near = sorted(free, key=lambda node: (node != wanted[tenant], -sum(map(len, free[node])), node))
        filled = _fill([core for node in near for core in free[node]], 1, size, whole)
        if filled is None:
            return None
        cpus_of[tenant] = filled[0]
        free = {node: _left(group, filled) for node, group in free.items()}
    return [cpus_of[tenant] for tenant in range(len(wanted))]


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
    """Return how many tenants these cores serve with `size` processors each."""
    most = min(tenants, len(cores), sum(map(len, cores)) // size)
    return next((count for count in range(most, 0, -1) if _fill(cores, count, size, whole) is not None), 0)


def _fill(cores: list[Core], count: int, size: int, whole: bool) -> list[Cpus] | None:
    """Return `count` times `size` processors from cores of their own, None where they do not come out.

    Everybody gets the same mixture of wide and narrow cores and of kinds as far as that divides, neighbours
    together. Unless `whole`, the last core of each may be wider than the missing part; the rest of it stays
    unused.
    """
    if not count:
        return []
    filled: list[list[int]] = [[] for _ in range(count)]
    rest: list[Core] = []
    # The widest first, then as the numbering has them.
    first = {(len(core), core.kind): core.processors for core in reversed(cores)}
    for width, kind in sorted(first, key=lambda sort: (-sort[0], first[sort])):
        group = [core for core in cores if (len(core), core.kind) == (width, kind)]
        each = min(len(group) // count, (size - len(filled[0])) // width)
        for i, cpus in enumerate(filled):
            cpus.extend(chain.from_iterable(core.processors for core in group[i * each : (i + 1) * each]))
        rest += group[each * count :]
    for cpus in filled:
        for core in tuple(rest):
            if len(core) <= size - len(cpus):
                cpus.extend(core.processors)
                rest.remove(core)
        if len(cpus) < size and not whole and rest:
            core = min(rest, key=lambda core: (len(core), core.processors))
            cpus.extend(core.processors[: size - len(cpus)])
            rest.remove(core)
        if len(cpus) < size:
            return None
    return [tuple(sorted(cpus)) for cpus in filled]


def _left(cores: list[Core], filled: Iterable[Cpus]) -> list[Core]:
    taken = set(chain.from_iterable(filled))
    return [core for core in cores if taken.isdisjoint(core.processors)]
