"""Assigns fewer processors than tenants: equal parts, each shared by equally many tenants. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

from cotenant.errors import CotenantError
from cotenant.isolation.assignment import Merit, assign_all, merit_of
from cotenant.isolation.cores import Cpus, cores_by_node
from cotenant.isolation.device_shares import most_frequent
from cotenant.machine.topology import Processor
from cotenant.text import many

Wanted = Sequence[int | None]
"""The node that each tenant should be on, None if any will do."""


def tenants_of_each(slices: int, tenants: int, limit: int) -> int:
    """Return the number of `tenants` on each of `slices` slices of `limit` processors. Raises CotenantError."""
    if not 1 <= slices <= limit:
        raise CotenantError(
            f"{slices} slices cannot be made of {many(limit, 'processor')}.", f"Use --slices 1 to {limit}."
        )
    if tenants % slices:
        even = [count for count in range(1, limit + 1) if tenants % count == 0]
        raise CotenantError(
            f"{many(tenants, 'user')} cannot share {many(slices, 'slice')} equally.",
            f"Use --slices {' or '.join(map(str, even))}, or --users {slices * (tenants // slices + 1)}.",
        )
    return tenants // slices


def share_cores(processors: Sequence[Processor], limit: int, wanted: Wanted) -> list[Cpus]:
    """Return the processors of each of `len(wanted) > limit` tenants.

    All `limit` processors are used, in equally large parts with equally many tenants, so that none is entitled to more
    than another, and no physical core is in two parts. The best of these divisions has each part on one NUMA node,
    then parts of one mixture of cores, then on one socket, then many parts: at worst all tenants share everything.
    """
    best, best_merit = list[Cpus](), Merit(False, False, False, False)
    for groups in _in_parts(wanted, limit):
        if len(groups) == 1:
            parts = [everything(processors, limit)]
        else:
            nodes = [most_frequent(node for i in group if (node := wanted[i]) is not None) for group in groups]
            parts = assign_all(processors, nodes, limit // len(groups))
        if not parts:
            continue
        if (merit := merit_of(processors, parts, whole=True)) > best_merit:
            best, best_merit = _cpus_by_tenant(groups, parts), merit
        if all(merit):
            break
    return best


def consecutive(processors: Sequence[Processor], limit: int, wanted: Wanted) -> list[Cpus]:
    """Return the processors of each tenant in parts of consecutive ids, regardless of the topology.

    Each tenant has a part of its own, or equally many share each of the most parts that divide evenly.
    """
    ids = sorted(processor.id for processor in processors)
    groups = [[tenant] for tenant in range(len(wanted))] if len(wanted) <= limit else _in_parts(wanted, limit)[0]
    size = limit // len(groups)
    return _cpus_by_tenant(groups, [tuple(ids[part * size : (part + 1) * size]) for part in range(len(groups))])


def everything(processors: Sequence[Processor], limit: int) -> Cpus:
    """Return `limit` processors, taken from every node in turn, core by core, since devices are on all nodes."""
    turns = chain.from_iterable(zip_longest(*cores_by_node(processors).values()))
    return tuple(sorted([number for core in turns if core for number in core.processors][:limit]))


def _in_parts(wanted: Wanted, limit: int) -> list[list[list[int]]]:
    """Return the tenants in equal groups, tenants of one wanted node together: the most groups first, last one group.

    The number of groups divides the tenants and the processors.
    """
    order = sorted(range(len(wanted)), key=lambda tenant: math.inf if (node := wanted[tenant]) is None else node)
    both = math.gcd(len(wanted), limit)
    counts = [count for count in range(both, 0, -1) if both % count == 0]
    sizes = [len(wanted) // count for count in counts]
    return [[order[start : start + size] for start in range(0, len(order), size)] for size in sizes]


def _cpus_by_tenant(groups: Iterable[Iterable[int]], parts: Iterable[Cpus]) -> list[Cpus]:
    """Return each tenant's processors, in the tenants' order: the part of its group."""
    cpus_of = {tenant: part for group, part in zip(groups, parts, strict=True) for tenant in group}
    return [cpus_of[tenant] for tenant in range(len(cpus_of))]
