"""Reads the host's topology from sysfs, procfs and the drivers, everything below a root path."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.errors import CotenantError
from cotenant.machine.accelerators import Accelerator
from cotenant.machine.kernel_devices import amd_accelerators, intel_accelerators
from cotenant.machine.limits import cgroup_mounts, memory_limit, quota_processors
from cotenant.machine.nvidia import nvidia_accelerators
from cotenant.machine.space import host_memory
from cotenant.procfs import fields, kilobytes, numbered, read_int, read_list, read_text, to_list

_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"
_HYBRID = ("core", "atom", "lowpower")  # the counters that x86 kernels keep apart where cores differ


@dataclass(frozen=True, slots=True)
class Processor:
    """A logical processor; `core` is the smallest logical id among the siblings of its physical core."""

    id: int
    core: int
    package: int
    node: int
    kind: str = ""
    """The sort of core, where this host has several: `core` and `atom` (Intel's names), or `capacity 446`."""


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node whose memory the caller may use."""

    id: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Machine:
    """The host as its caller may use it: `processors`, `nodes` and `accelerators` are those it may use."""

    hostname: str
    processors: tuple[Processor, ...]
    processor_total: int
    """The processors online, whether the caller may use them or not."""
    nodes: tuple[NumaNode, ...]
    memory_bytes: int
    """The smallest of the host's memory, the nodes the caller may use, and every limit above us."""
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
    """Return the machine of the host below `root`; a fact that it does not give becomes a sane value.

    `affinity`: the processors the caller may use, by default its own (of another root: all online ones).
    `environ`: where visible-devices variables are looked up. `nvml`: a stand-in for pynvml.
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
    node_of, nodes, denied = _nodes(root, host_bytes)
    mounts = cgroup_mounts(root)
    bounds = [host_bytes, memory_limit(mounts), sum(node.memory_bytes for node in nodes) if denied else None]
    return Machine(
        hostname=read_text(root / "proc/sys/kernel/hostname") or os.uname().nodename,
        processors=_processors(root, usable, node_of),
        processor_total=max(len(online), len(usable)),
        nodes=nodes,
        memory_bytes=min((bound for bound in bounds if bound), default=0),
        quota_processors=quota_processors(mounts),
        accelerators=accelerators(root, environ, nvml),
        model_name=model_name(root),
    )


def require_linux() -> None:
    """Raise CotenantError on another kernel, as that of macOS: processors, limits and devices are asked of Linux."""
    if (kernel := os.uname().sysname) != "Linux":
        raise CotenantError(f"Measurements are made on Linux, and this is {kernel}.", "Start it on a host with Linux.")


def accelerators(root: Path, environ: Mapping[str, str], nvml: Any = None) -> tuple[Accelerator, ...]:
    """Return the devices of one vendor that the caller may use. `nvml`: a stand-in for pynvml."""
    # One build of torch drives one vendor's devices: a display beside eight accelerators is not a ninth.
    return (
        nvidia_accelerators(root, environ, nvml) or amd_accelerators(root, environ) or intel_accelerators(root, environ)
    )


def _processors(root: Path, usable: Sequence[int], node_of: Mapping[int, int]) -> tuple[Processor, ...]:
    core_of: dict[int, tuple[int, int]] = {}
    first_of: dict[tuple[int, int], int] = {}
    for number in usable:
        if number in core_of:
            continue
        topology = root / _CPU / f"cpu{number}/topology"
        package = max(read_int(topology / "physical_package_id") or 0, 0)
        siblings = read_list(topology / "core_cpus_list") or read_list(topology / "thread_siblings_list")
        if number not in siblings:
            core = read_int(topology / "core_id")
            # Core ids repeat from package to package.
            first = number if core is None or core < 0 else first_of.setdefault((package, core), number)
            siblings = (first, number)
        core_of |= dict.fromkeys(siblings, (min(siblings), package))
    kind_of = _kinds(root, usable)
    return tuple(
        Processor(number, *core_of[number], node_of.get(number, 0), kind_of.get(number, "")) for number in usable
    )


def _kinds(root: Path, usable: Sequence[int]) -> dict[int, str]:
    """Return the kind of each processor's core; nothing where all that are usable are of one kind."""
    kinds = {number: name for name in _HYBRID for number in read_list(root / f"sys/devices/cpu_{name}/cpus")}
    if not kinds and read_text(root / _CPU / f"cpu{usable[0]}/cpu_capacity"):
        kinds = {number: f"capacity {read_text(root / _CPU / f'cpu{number}/cpu_capacity')}" for number in usable}
    return kinds if len({kinds.get(number, "") for number in usable}) > 1 else {}


def _nodes(root: Path, host_bytes: int) -> tuple[dict[int, int], tuple[NumaNode, ...], bool]:
    """Return each processor's node, the nodes whose memory we may use, and whether others are denied us."""
    node_of: dict[int, int] = {}
    every: list[NumaNode] = []
    for number in numbered(root / _NODE, "node"):
        directory = root / _NODE / f"node{number}"
        node_of |= dict.fromkeys(read_list(directory / "cpulist"), number)
        memory = fields(read_text(directory / "meminfo"), ":").get(f"Node {number} MemTotal", "")
        every.append(NumaNode(number, kilobytes(memory)))
    if not every:
        return {}, (NumaNode(0, host_bytes),), False
    listed = fields(read_text(root / "proc/self/status"), ":").get("Mems_allowed_list", "")
    allowed = to_list(listed)
    nodes = tuple(node for node in every if node.id in allowed) or tuple(every)
    return node_of, nodes, len(nodes) < len(every)


def model_name(root: Path = Path("/")) -> str:
    # The first processor says it, and the kernel samples every other's clock to make the rest of the file.
    values = fields(read_text(root / "proc/cpuinfo", limit_bytes=8192), ":")
    names = ("model name", "cpu model", "Model", "cpu", "Hardware")
    return next((values[name] for name in names if values.get(name)), os.uname().machine)
