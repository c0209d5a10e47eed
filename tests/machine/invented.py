"""Machines that exist nowhere, for tests of computations from one."""

from __future__ import annotations

from cotenant.machine.accelerators import Accelerator
from cotenant.machine.topology import Machine, NumaNode, Processor

GIB = 1 << 30


def device(index: int, node: int = -1, name: str = "V100") -> Accelerator:
    return Accelerator(index, "nvidia", name, f"GPU-{index:08x}", f"0000:{index + 16:02x}:00.0", node, 16 * GIB, "580")


def machine(
    nodes: int = 1,
    cores: int = 4,
    threads: int = 1,
    *,
    memory_bytes: int = 64 * GIB,
    devices: tuple[Accelerator, ...] = (),
    quota: float | None = None,
    without: tuple[int, ...] = (),
    node_bytes: tuple[int, ...] = (),
) -> Machine:
    """A machine of `cores` cores a node; sibling s of core c is c + s * all cores, as on most hosts."""
    total = nodes * cores
    processors = tuple(
        Processor(number, number % total, number % total // cores, number % total // cores)
        for number in range(total * threads)
        if number not in without
    )
    return Machine(
        hostname="invented",
        processors=processors,
        processor_total=total * threads,
        nodes=tuple(NumaNode(n, (node_bytes or (memory_bytes // nodes,) * nodes)[n]) for n in range(nodes)),
        memory_bytes=memory_bytes,
        quota_processors=quota,
        accelerators=devices,
        model_name="invented",
    )


def of_cores(*cores: tuple[int, ...]) -> Machine:
    """A machine of one node with exactly these cores."""
    processors = sorted((Processor(number, min(core), 0, 0) for core in cores for number in core), key=lambda p: p.id)
    nodes = (NumaNode(0, 64 * GIB),)
    return Machine("invented", tuple(processors), len(processors), nodes, 64 * GIB, None, (), "invented")
