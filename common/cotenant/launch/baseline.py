"""Baselines, how a tenant does alone: which launches a baseline adds, and how much the short one of them measures."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence

from cotenant.choices import BaselineKind
from cotenant.isolation.slice import Slice
from cotenant.launch.limits import Limits
from cotenant.machine.topology import Machine
from cotenant.results.record import Baseline

QUICK_KEPT_S, QUICK_MOST_S = 2.0, 10.0
"""How long the kept observations of a quick baseline last, and the most time of all of them where they are long."""

Alone = tuple[int, tuple[int, ...]]
"""The tenant of a launch alone, and the tenants for whose baselines it stands."""


def alone_of(
    kind: BaselineKind, slices: Sequence[Slice], machine: Machine, cells: Sequence[str] = ()
) -> Iterator[Alone]:
    """Yield who is launched alone: each tenant for a `whole` baseline, for a `quick` one the first of each kind of
    slice that runs each of the `cells`, which are the tenants' in a mix; nobody who has no neighbour. Where `blocks`
    cannot be had it is a quick one."""
    if len(slices) < 2 or kind == "none":
        return
    tenants = [slice_.tenant for slice_ in slices]
    groups = [(tenant,) for tenant in tenants] if kind == "whole" else _alike(slices, machine)
    for group in groups:
        firsts = {cells[tenant] if cells else "": tenant for tenant in reversed(group)}
        yield from ((tenant, group) for tenant in sorted(firsts.values()))


def limits_alone(kind: Baseline | None, limits: Limits) -> Limits:
    """Return the limits of a launch alone: a quick one keeps few observations, as long as those beside the others."""
    if kind != "quick":
        return limits
    budget_s = min(QUICK_MOST_S, limits.budget_s or QUICK_MOST_S)
    return dataclasses.replace(limits, at_most_s=QUICK_KEPT_S, at_least_s=0.0, budget_s=budget_s)


def _alike(slices: Sequence[Slice], machine: Machine) -> list[tuple[int, ...]]:
    """Return the tenants by kind of slice: equal in cores and their sort, threads, nodes, memory and devices."""
    processors = {processor.id: processor for processor in machine.processors}
    kinds = defaultdict(list)
    for slice_ in slices:
        own = [processors[number] for number in slice_.processors]
        kind = (
            len({processor.core for processor in own}),
            tuple(sorted(processor.kind for processor in own)),
            len(slice_.nodes),
            slice_.memory_bytes,
            tuple((device.name, device.memory_bytes, device.node in slice_.nodes) for device in slice_.accelerators),
        )
        kinds[kind].append(slice_.tenant)
    return [tuple(tenants) for tenants in kinds.values()]
