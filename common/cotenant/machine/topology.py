"""Reads the host's topology from sysfs, procfs and the drivers, everything below a root path."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.errors import CotenantError
from cotenant.machine.accelerators import Accelerator
from cotenant.machine.cpu import Cache, last_level_caches
from cotenant.machine.kernel_devices import amd_accelerators, intel_accelerators
from cotenant.machine.kinds import kinds
from cotenant.machine.limits import cgroup_mounts, memory_limit, quota_processors
from cotenant.machine.models import model_name
from cotenant.machine.nodes import Nodes, NumaNode, numa_nodes
from cotenant.machine.nvidia import nvidia_accelerators
from cotenant.machine.space import host_memory
from cotenant.procfs import numbered, read_int, read_list, read_text

_CPU = "sys/devices/system/cpu"


@dataclass(frozen=True, slots=True)
class Processor:
    """A logical processor; `core` is the smallest logical id among the siblings of its physical core.

    `package` counts sockets from 0, whatever the kernel's numbers are.
    """

    id: int
    core: int
    package: int
    node: int
    kind: str = ""
    """The sort of core, if this host has several: `core` and `atom` (Intel's names), or `Cortex-X925`."""
    cache: Cache | None = None
    """Its last-level cache, as far as the kernel says."""
    memory_nodes: tuple[int, ...] = ()
    """The nodes of its memory, if it is not `node` alone."""

    @property
    def cache_bytes(self) -> int:
        """The size of its last-level cache, 0 if the kernel does not say."""
        return 0 if self.cache is None else self.cache.size_bytes or 0


@dataclass(frozen=True, slots=True)
class Machine:
    """The host as its caller may use it, limited to usable `processors`, `nodes` and `accelerators`."""

    hostname: str
    processors: tuple[Processor, ...]
    processor_total: int
    """The processors online, whether the caller may use them or not."""
    nodes: tuple[NumaNode, ...]
    memory_bytes: int
    """The smallest of the host's memory, the usable nodes' memory, and every limit above us."""
    quota_processors: float | None
    """The smallest processor-time quota above us, in processors."""
    accelerators: tuple[Accelerator, ...]
    model_name: str

    @property
    def nvidia_places(self) -> frozenset[str]:
        """The PCI ids of the NVIDIA devices among them: the partitions of one device share its id."""
        return frozenset(device.pci for device in self.accelerators if device.vendor == "nvidia")


def discover(
    root: Path = Path("/"),
    affinity: Set[int] | None = None,
    environ: Mapping[str, str] | None = None,
    nvml: Any = None,
) -> Machine:
    """Return the machine of the host below `root`; a missing fact becomes a sane value.

    `affinity`: the processors the caller may use, by default its own (of another root: all online ones).
    `environ`: the source of visible-devices variables. `nvml`: a stand-in for pynvml.
    Raises CotenantError on another kernel than Linux.
    """
    if root == Path("/"):
        require_linux()
    online = read_list(root / _CPU / "online") or numbered(root / _CPU, "cpu")
    if affinity is None:
        affinity = set(online) if online and root != Path("/") else os.sched_getaffinity(0)
    environ = os.environ if environ is None else environ
    usable = sorted(affinity & set(online) if online else affinity) or sorted(affinity)
    host_bytes = host_memory(root).total_bytes
    nodes = numa_nodes(root, host_bytes)
    mounts = cgroup_mounts(root)
    bounds = (host_bytes, memory_limit(mounts), sum(node.memory_bytes for node in nodes.usable))
    return Machine(
        hostname=read_text(root / "proc/sys/kernel/hostname") or os.uname().nodename,
        processors=_processors(root, usable, _packages(root, sorted({*online, *usable})), nodes),
        processor_total=max(len(online), len(usable)),
        nodes=nodes.usable,
        memory_bytes=min((bound for bound in bounds if bound), default=0),
        quota_processors=quota_processors(mounts),
        accelerators=accelerators(root, environ, nvml),
        model_name=model_name(root),
    )


def require_linux() -> None:
    """Raise CotenantError on another kernel, as macOS's: only Linux tells about processors, limits and devices."""
    if (kernel := os.uname().sysname) != "Linux":
        raise CotenantError(f"Measurements are made on Linux, and this is {kernel}.", "Start it on a host with Linux.")


def accelerators(root: Path, environ: Mapping[str, str], nvml: Any = None) -> tuple[Accelerator, ...]:
    """Return the devices of one vendor that the caller may use. `nvml`: a stand-in for pynvml."""
    # One build of torch drives one vendor's devices: a display beside eight accelerators is not a ninth.
    return (
        nvidia_accelerators(root, environ, nvml) or amd_accelerators(root, environ) or intel_accelerators(root, environ)
    )


def _processors(
    root: Path, usable: Sequence[int], package_of: Mapping[int, int], nodes: Nodes
) -> tuple[Processor, ...]:
    core_of: dict[int, int] = {}
    first_of: dict[tuple[int, int], int] = {}
    for number in usable:
        if number in core_of:
            continue
        topology = root / _CPU / f"cpu{number}/topology"
        siblings = read_list(topology / "core_cpus_list") or read_list(topology / "thread_siblings_list")
        if number not in siblings:
            core = read_int(topology / "core_id")
            # Core ids repeat from package to package.
            key = package_of[number], -1 if core is None else core
            siblings = (number if key[1] < 0 else first_of.setdefault(key, number), number)
        core_of |= dict.fromkeys(siblings, min(siblings))
    kind_of = kinds(root, {number: core_of[number] for number in usable})
    cache_of = {number: cache for cache in last_level_caches(usable, root) for number in cache.processors}
    return tuple(
        Processor(
            number,
            core_of[number],
            package_of[number],
            home := nodes.home_of.get(number, 0),
            kind_of.get(number, ""),
            cache_of.get(number),
            nodes.memory_of.get(home, ()),
        )
        for number in usable
    )


def _packages(root: Path, online: Sequence[int]) -> dict[int, int]:
    """Return each processor's socket, numbered from 0: the kernel's ids may be -1, repeat, or leave gaps."""
    named: dict[int, tuple[int, int]] = {}
    for number in online:
        if number in named:
            continue
        topology = root / _CPU / f"cpu{number}/topology"
        socket = max(read_int(topology / "physical_package_id") or 0, 0)
        members = read_list(topology / "package_cpus_list") or read_list(topology / "core_siblings_list")
        named |= dict.fromkeys(members, (socket, min(members))) if number in members else {number: (socket, -1)}
    position = {name: position for position, name in enumerate(sorted(set(named.values())))}
    return {number: position[name] for number, name in named.items()}
