"""A slice: the processors, nodes, memory and devices of one tenant, as planned."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cotenant.isolation.device_modes import DeviceShare
from cotenant.machine.accelerators import Accelerator


@dataclass(frozen=True, slots=True)
class Slice:
    """One tenant's slice, one of `slices` equal ones; its memory comes from `nodes`.

    `sharers` tenants of the plan have these processors, itself included. Memory is each tenant's own. `device_share` is
    its part of a device if sharing was requested.
    """

    tenant: int
    processors: tuple[int, ...]
    nodes: tuple[int, ...]
    memory_bytes: int
    accelerators: tuple[Accelerator, ...]
    slices: int = 1
    sharers: int = 1
    device_share: DeviceShare | None = None

    @property
    def part(self) -> int:
        """The first of its processors, which tells parts apart: two slices share all processors, or none."""
        return self.processors[0]

    @property
    def alone(self) -> Slice:
        """The same slice of a tenant alone: the device is all its own."""
        return replace(self, device_share=None)
