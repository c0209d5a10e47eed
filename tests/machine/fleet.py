"""Hosts as they are met, as trees of kernel files: the right plan of each is known by heart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cotenant.machine.topology import Machine, discover
from cotenant.procfs import format_list
from machine.fakehost import Board, FakeNvml, mount, node, processors, write

GIB_KB = 1 << 20
Cores = list[tuple[int, ...]]


def siblings(cores: int, threads: int = 2) -> Cores:
    """Cores as x86 numbers them: sibling s of core c is c + s * cores."""
    return [tuple(core + cores * thread for thread in range(threads)) for core in range(cores)]


def neighbours(cores: int, threads: int) -> Cores:
    """Cores as Power numbers them: siblings side by side."""
    return [tuple(range(core * threads, (core + 1) * threads)) for core in range(cores)]


def boards(nodes: Sequence[int], name: str = "NVIDIA H200") -> list[tuple[Board, int]]:
    """A device on each of `nodes`, in PCI order."""
    return [(Board(f"GPU-{i:08x}", f"00000000:{16 + i:02X}:00.0", name), node) for i, node in enumerate(nodes)]


def host(
    root: Path,
    cores: Cores,
    node_of: Callable[[int], int] = lambda position: 0,
    *,
    node_gib: Sequence[float] | Mapping[int, float] = (64,),
    packages: Callable[[int], int] = lambda position: 0,
    devices: Sequence[tuple[Board, int]] = (),
    name: str = "invented",
    model: str = "Invented Processor",
) -> Machine:
    """Write a host whose core at position p lies on node `node_of(p)` and package `packages(p)`, and read it."""
    processors(root, cores, [packages(position) for position in range(len(cores))])
    sizes = node_gib if isinstance(node_gib, Mapping) else dict(enumerate(node_gib))
    for number, size_gib in sizes.items():
        local = [processor for position, core in enumerate(cores) if node_of(position) == number for processor in core]
        node(root, number, format_list(local), int(size_gib * GIB_KB))
    known: dict[str, object] = {
        "proc/meminfo": f"MemTotal: {int(sum(sizes.values()) * GIB_KB)} kB",
        "proc/cpuinfo": f"model name : {model}",
        "proc/sys/kernel/hostname": name,
    }
    for board, number in devices:
        known[f"sys/bus/pci/devices/{board.bus[4:].lower()}/numa_node"] = number
    write(root, known)
    return discover(root, environ={}, nvml=FakeNvml([board for board, _ in devices]))


def dgx(root: Path) -> Machine:
    """2 x 64 cores with SMT (k and k + 128), 8 devices, 4 on each of 2 nodes."""
    return host(
        root,
        siblings(128),
        lambda p: p // 64,
        packages=lambda p: p // 64,
        node_gib=(1007.5, 1007.9),
        devices=boards((0, 0, 0, 0, 1, 1, 1, 1)),
        name="dgx",
        model="AMD EPYC 9554 64-Core Processor",
    )


def laptop(root: Path) -> Machine:
    """6 wide cores with SMT (0-11) and 8 narrow ones (12-19)."""
    cores = [*neighbours(6, 2), *((number,) for number in range(12, 20))]
    write(root, {"sys/devices/cpu_core/cpus": "0-11", "sys/devices/cpu_atom/cpus": "12-19"})
    return host(root, cores, node_gib=(31.2,), name="laptop", model="12th Gen Intel(R) Core(TM) i7-12700H")


def big_little(root: Path) -> Machine:
    """Four small and four large cores that only the kernel's capacities tell apart, the small ones first."""
    write(root, {f"sys/devices/system/cpu/cpu{n}/cpu_capacity": 446 if n < 4 else 1024 for n in range(8)})
    return host(root, siblings(8, 1), node_gib=(16,), name="board")


def power(root: Path) -> Machine:
    """2 x 10 cores of 8 threads each, on nodes 0 and 8 as Power numbers them, with 4 devices."""
    return host(
        root,
        neighbours(20, 8),
        lambda p: 8 * (p // 10),
        packages=lambda p: 8 * (p // 10),
        node_gib={0: 256, 8: 256},
        devices=boards((0, 0, 8, 8), "Tesla V100-SXM2-16GB"),
        name="power",
        model="POWER9, altivec supported",
    )


def nps4(root: Path) -> Machine:
    """2 sockets of 4 nodes each, 16 cores a node with SMT, a device on each node."""
    return host(
        root,
        siblings(128),
        lambda p: p // 16,
        packages=lambda p: p // 64,
        node_gib=(94.4,) * 8,
        devices=boards(range(8), "NVIDIA A100-SXM4-40GB"),
        name="nps4",
        model="AMD EPYC 7763 64-Core Processor",
    )


def container(root: Path) -> Machine:
    """A host of 96 processors on 2 nodes, seen from a container limited to the time of 10 and to 40 GiB."""
    files = {
        "proc/self/cgroup": "0::/",
        "proc/self/mountinfo": mount("/sys/fs/cgroup", "cgroup2", "nsdelegate"),
        "sys/fs/cgroup/cpu.max": "1000000 100000",
        "sys/fs/cgroup/memory.max": 40 << 30,
    }
    write(root, files)
    return host(
        root, siblings(96, 1), lambda p: p // 48, packages=lambda p: p // 48, node_gib=(188, 188), name="container"
    )


def mig(root: Path) -> Machine:
    """One device cut into seven instances."""
    parts = tuple(Board(f"MIG-{i}", "", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", 10 << 30) for i in range(7))
    board = Board("GPU-0", "00000000:19:00.0", "NVIDIA H100 80GB HBM3", parts=parts, mig=True)
    return host(root, siblings(16), node_gib=(252,), devices=[(board, 0)], name="mig")


def offline(root: Path) -> Machine:
    """4 cores with SMT, of which processors 1 (with sibling 5 left) and 3, 7 (a whole core) are offline."""
    return host(root, [(0, 4), (5,), (2, 6)], node_gib=(16,), name="offline")


def desktop(root: Path) -> Machine:
    """8 cores with SMT and one device whose node the host does not say."""
    return host(root, siblings(8), node_gib=(62.7,), devices=boards((-1,), "NVIDIA GeForce RTX 4090"), name="desktop")


def single(root: Path) -> Machine:
    """One processor."""
    return host(root, [(0,)], node_gib=(4,), name="single")


def far_memory(root: Path) -> Machine:
    """2 nodes of 4 cores, and a third that has memory only."""
    return host(root, siblings(8, 1), lambda p: p // 4, node_gib=(32, 32, 128), name="far-memory")
