"""The cores that a plan deals out, in the order of the sockets, nodes and caches that they share. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from cotenant.machine.topology import Processor

Cpus = tuple[int, ...]
"""The processors of one tenant, ascending."""


@dataclass(frozen=True, slots=True)
class Core:
    """The usable processors of one physical core, ascending. No core serves two tenants while cores suffice."""

    processors: tuple[int, ...]
    kind: str
    node: int
    place: tuple[int, ...]
    """The ids of the groups of processors around it, the largest group first."""

    def __len__(self) -> int:
        return len(self.processors)


Level = Callable[[Processor], int]
"""The group of a processor: its socket, node or cache."""


def package_of(processor: Processor) -> int:
    return processor.package


def node_of(processor: Processor) -> int:
    return processor.node


def cache_of(processor: Processor) -> int:
    return -1 if processor.cache is None else min(processor.cache.processors)


def cores_by_node(processors: Iterable[Processor]) -> dict[int, list[Core]]:
    """Return the cores of each node, nodes and cores ascending, each core with the given processors only."""
    return {node: list(cores) for node, cores in groupby(_cores(processors, [node_of]), key=lambda core: core.node)}


def _cores(processors: Iterable[Processor], levels: Sequence[Level]) -> list[Core]:
    """Return the cores in the order of their places at these levels, the largest groups first, then by their ids."""
    members: dict[int, list[Processor]] = {}
    for processor in sorted(processors, key=lambda processor: processor.id):
        members.setdefault(processor.core, []).append(processor)
    cores = [
        Core(tuple(p.id for p in core), core[0].kind, core[0].node, tuple(level(core[0]) for level in levels))
        for core in members.values()
    ]
    return sorted(cores, key=lambda core: (core.place, core.processors))


def views_of(processors: Sequence[Processor]) -> list[list[Core]]:
    """Return the cores in several orders: by all levels, without caches, by nodes alone, and by their ids.

    Fewer levels leave more freedom if a cache, a socket or a node has cores of one kind only.
    """
    groups = {level: len({level(processor) for processor in processors}) for level in (package_of, node_of, cache_of)}
    views = []
    for left_out in ((), (cache_of,), (cache_of, package_of), tuple(groups)):
        levels = sorted(
            (level for level in groups if groups[level] > 1 and level not in left_out), key=groups.__getitem__
        )
        views.append(tuple(levels))
    return [_cores(processors, levels) for levels in dict.fromkeys(views)]


def mixtures(processors: Iterable[Processor], assignment: Iterable[Cpus]) -> list[Counter[tuple[int, str]]]:
    """Return for each tenant the number of its cores by (processors of the core that it has, kind)."""
    core_of = {processor.id: (processor.core, processor.kind) for processor in processors}
    threads = [Counter(core_of[number] for number in cpus) for cpus in assignment]
    return [Counter((count, kind) for (_, kind), count in by_core.items()) for by_core in threads]
