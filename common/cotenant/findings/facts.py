"""The input of checks: facts on a host, and on the jobs that are to run on it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from cotenant.finding import Finding
from cotenant.isolation.plan import Plan
from cotenant.machine.compiler import compiler_lacks
from cotenant.machine.cpu import Clocking, Speed, clocking
from cotenant.machine.limits import cgroup_mounts, memory_left
from cotenant.machine.load import Load, load_now, processor_seconds
from cotenant.machine.nvidia import DeviceState, device_states, silence
from cotenant.machine.space import DevShm, Disk, HostMemory, disks, host_memory, shared_memory
from cotenant.machine.topology import Machine
from cotenant.machine.virtual import Virtual, virtual

Apex = Literal["missing", "another one than NVIDIA's", "without kernels", "built"]
"""The state of NVIDIA's apex, whose optimizers pass over all weights in a few kernels."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """The backend that would serve (`name` "" if none does), the limits that it does not enforce, and its findings."""

    name: str
    unenforced: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    elsewhere: tuple[Path, ...] = ()
    """The cgroups of runs in other PID namespaces that may still run."""
    own_shm: bool = False
    """True if each tenant gets a /dev/shm of its own, as large as its memory."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Results of a child with torch. Errors are "" if all went well; `died` says how the child itself ended."""

    died: str = ""
    timed_out: bool = False
    """True if it timed out: a torch on a slow disk is not a broken one."""
    torch: str = ""
    torch_error: str = ""
    built_for: str = ""
    """`cpu`, or a name of torch's package index: `cu128`, `rocm6.4`."""
    vision: str = ""
    vision_error: str = ""
    lapack_error: str = ""
    devices: tuple[str, ...] = ()
    """For each device that torch sees: the error of a small product on it, or ""."""


@dataclass(frozen=True, slots=True)
class JobNeeds:
    """The unmet needs of one job: a reason that it cannot start, missing input."""

    name: str
    refusal: Finding | None = None
    missing: tuple[Path, ...] = ()
    reads: int = 0
    """The number of inputs it reads, missing ones included."""
    made: bool = False
    """True if its input is made at the start of a suite."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A host; and, if requested, the slices, the software and the jobs of a suite to come.

    `silence`: why no device answers, although there is a driver. `loader_bytes`: the most bytes that loaders of one
    launch may hold in shared memory at once, by the job file's numbers, 0 if unknown. `stolen_share`: the part of all
    processor time since boot that the hypervisor took.
    `memory_left_bytes`: memory that limits around us leave free, None without one. `niceness`: ours, which tenants
    inherit.
    `compiler_lacks`: the missing part of a C compiler.
    """

    machine: Machine
    clocking: Clocking
    memory: HostMemory
    shared: DevShm | None
    disks: tuple[Disk, ...]
    load: Load
    virtual: Virtual
    stolen_share: float
    devices: tuple[DeviceState, ...]
    silence: str = ""
    loader_bytes: int = 0
    memory_left_bytes: int | None = None
    niceness: int = 0
    compiler_lacks: str = ""
    isolation: Isolation | None = None
    plan: Plan | None = None
    plan_refusal: Finding | None = None
    self_test: SelfTest | None = None
    speed: Speed | None = None
    jobs: tuple[JobNeeds, ...] | None = None
    apex: Apex = "missing"


def apex_here() -> Apex:
    """Return the state of NVIDIA's apex, without an import: another package has its name."""
    package = find_spec("apex")
    if package is None:
        return "missing"
    places = package.submodule_search_locations or ()
    if not any(Path(place, "multi_tensor_apply").is_dir() for place in places):
        return "another one than NVIDIA's"
    return "built" if find_spec("amp_C") else "without kernels"


def gather(
    machine: Machine,
    directories: Mapping[str, Path],
    load: Load | None = None,
    root: Path = Path("/"),
    nvml: Any = None,
) -> Facts:
    """Return the facts of the host below `root`, in about 10 ms without devices, most of it for the look at its load.

    `directories` are named after their purpose. `load`: the host's load, by default as a short look finds it.
    """
    processor_s, _, stolen_s = processor_seconds()
    return Facts(
        machine=machine,
        clocking=clocking([processor.id for processor in machine.processors], root),
        memory=host_memory(root),
        shared=shared_memory(root),
        disks=disks(directories),
        load=load_now(root) if load is None else load,
        virtual=virtual(root),
        stolen_share=stolen_s / processor_s if processor_s else 0.0,
        devices=device_states(machine.nvidia_places, root, nvml) if machine.nvidia_places else (),
        silence="" if machine.accelerators else silence(root, os.environ, nvml),
        memory_left_bytes=memory_left(cgroup_mounts(root)),
        niceness=os.getpriority(os.PRIO_PROCESS, 0),
        compiler_lacks=compiler_lacks(),
        apex=apex_here(),
    )
