"""Baselines, the rate of a tenant alone: the launches that a baseline adds, and the limits of the quick one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cotenant.choices import BaselineKind
from cotenant.isolation.slice import Slice
from cotenant.launch.limits import Limits
from cotenant.machine.topology import Machine
from cotenant.results.record import Baseline

QUICK_KEPT_S, QUICK_MOST_S = 2.0, 10.0
"""Seconds that the kept observations of a quick baseline last, and the most seconds of all its observations."""

Alone = tuple[int, tuple[int, ...]]
"""A tenant that is launched alone, and the tenants whose baseline this is."""


def alone_of(
    kind: BaselineKind, slices: Sequence[Slice], machine: Machine, cells: Sequence[str] = ()
) -> Iterator[Alone]:
    """Yield the tenants that are launched alone: for a `whole` baseline each one; for any other kind, for each kind of
    slice and each of the `cells` (the tenants' cells in a mix), the first tenant. A single tenant needs no baseline."""
    if len(slices) < 2 or kind == "none":
        return
    tenants = [slice_.tenant for slice_ in slices]
    groups = [(tenant,) for tenant in tenants] if kind == "whole" else _alike(slices, machine)
    for group in groups:
        firsts = {cells[tenant] if cells else "": tenant for tenant in reversed(group)}
        yield from ((tenant, group) for tenant in sorted(firsts.values()))


def limits_alone(kind: Baseline | None, limits: Limits) -> Limits:
    """Return the limits of a launch alone; a quick one keeps few observations, as long as those beside neighbours."""
    if kind != "quick":
        return limits
    budget_s = min(QUICK_MOST_S, limits.budget_s or QUICK_MOST_S)
    return replace(limits, at_most_s=QUICK_KEPT_S, at_least_s=0.0, budget_s=budget_s)


def _alike(slices: Sequence[Slice], machine: Machine) -> list[tuple[int, ...]]:
    """Return tenants grouped by kind of slice: one number and kind of cores, threads, nodes, memory and devices."""
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
