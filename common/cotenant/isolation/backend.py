"""The protocol of every backend, and the types in it. Standard library only, as the reaper uses it, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from cotenant.isolation.family import Family
from cotenant.isolation.runs import RunName
from cotenant.isolation.slice import Slice
from cotenant.machine.virtual import batch_system, virtual
from cotenant.procfs import format_list

WEIGHT = "weight"
"""Unenforced if tenants share processors and no cgroup gives them equal processor time."""


Holder = Literal["freezer", "stopped"]


class NotIsolatedError(OSError):
    """A slice differs from its plan. The text has the request and the kernel's answer."""


class UnkillableError(NotIsolatedError):
    """Processes outlive SIGKILL, as they wait inside the kernel."""


class NotExecutableError(NotIsolatedError):
    """A command has too many words and variables for any process; its slice is not to blame."""


@dataclass(frozen=True, slots=True)
class SliceEntry:
    """The input of enter.py: the files to write `0` to, and the processors it must find itself on.

    `shm_bytes`: the size of the tenant's own /dev/shm; with 0 it uses the machine's.
    """

    procs_files: tuple[Path, ...] = ()
    processors: tuple[int, ...] | None = None
    set_affinity: bool = False
    shm_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ReadBack:
    """The kernel's values of a slice's limits; None if this backend has none."""

    processors: str | None = None
    nodes: str | None = None
    memory_bytes: int | None = None
    memory_and_swap_bytes: int | None = None
    pids_max: str | None = None
    cpu_weight: str | None = None
    """Its weight in the sharing of processor time: `cpu.weight`, or v1's `cpu.shares`."""
    oom_group: str | None = None
    """`1`: when memory runs out, all of its processes end; `0`: one does."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Cumulative counters of a slice; None if this backend or kernel does not count.

    `throttled_*`: how often and how long a quota of the slice or of a cgroup above it held it back.
    `stalled_*` are the totals of pressure stall information: microseconds in which `some` of its tasks waited, or all
    that could run (`full`).
    """

    processor_ns: int | None = None
    throttled_ns: int | None = None
    throttled_times: int | None = None
    stalled_cpu_some_us: int | None = None
    stalled_cpu_full_us: int | None = None
    stalled_memory_some_us: int | None = None
    stalled_memory_full_us: int | None = None
    stalled_io_some_us: int | None = None
    stalled_io_full_us: int | None = None
    memory_peak_bytes: int | None = None
    memory_cache_bytes: int | None = None
    """Page cache of files, which the kernel reclaims when memory is short."""
    pids: int | None = None
    pids_peak: int | None = None
    pids_refused: int | None = None
    oom_events: int | None = None
    """The times that the slice's own limit left no memory, whether a process was killed or not."""
    oom_kills: int | None = None
    oom_group_kills: int | None = None

    def at_end(self, done: Counters) -> Counters:
        """Return these counters with the flows, page cache and pids read at the last DONE (`done`), if they were."""
        then = {
            name: value for name in (*FLOWS, "memory_cache_bytes", "pids") if (value := getattr(done, name)) is not None
        }
        return dataclasses.replace(self, **then)

    def since(self, before: Counters) -> Counters:
        """Return these counters with the flows since `before`, if read there; the others stay as they are."""
        pairs = {name: (getattr(before, name), getattr(self, name)) for name in FLOWS}
        flows = {name: then - first for name, (first, then) in pairs.items() if None not in (first, then)}
        return dataclasses.replace(self, **flows)

    def uncounted(self) -> list[str]:
        """Return the names of missing counters."""
        return [counter.name for counter in dataclasses.fields(self) if getattr(self, counter.name) is None]


FLOWS = tuple(
    counter.name
    for counter in dataclasses.fields(Counters)
    if counter.name.startswith(("processor_", "throttled_", "stalled_"))
)
"""The counters whose difference between GO and the last DONE is of interest."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a backend is not available, as the rest of a sentence, and the remedy, which may be empty.

    `partial`: it can still serve, without the limits that its `unenforced` names.
    """

    reason: str
    remedy: str = ""
    partial: bool = False


SETUP_SCRIPT = "sudo ./cgroup_setup.sh"
ENGINES = ("Docker", "Podman", "Kubernetes")


def remedy_inside(otherwise: str) -> str:
    """Return the remedy for cgroups kept by a batch system or a container engine; on a host itself `otherwise`."""
    if batch := batch_system():
        return (
            f"{batch} keeps the cgroups of its jobs: slices can be made as root, outside of a job (docs/clusters.md)."
        )
    if (container := virtual().container) in ENGINES:
        return (
            f"Inside {container} slices need a privileged container, as root, with the suite as its command "
            "(docs/clusters.md)."
        )
    return otherwise


Location = dict[str, Any]
"""The place where a backend keeps its runs, in a form that JSON can hold; empty without cgroups."""


class LiveSlice(Protocol):
    """An existing slice: one tenant of one launch lives in it."""

    entry: SliceEntry

    def verify(self) -> ReadBack:
        """Compare the kernel's values with the plan. Raises NotIsolatedError."""

    def changes(self, pids: Collection[int]) -> list[str]:
        """Return a sentence for each deviation from the plan: limits, a peak, processes that left the slice.

        `pids` should be inside, as should all in its cgroups. Never raises.
        """
        return []

    def counters(self) -> Counters:
        """Return the counters now; never raises: an unreadable counter is missing."""

    def processor_ns(self) -> int | None:
        """Return the processor time alone, which is read several times a second while tenants are timed."""
        return None

    def oom_kills(self) -> int | None:
        """Return this counter alone, which is cheap enough to read while tenants are timed."""
        return None

    def memory_used_bytes(self) -> int | None:
        """Return the bytes the kernel charges to it now, its page cache included; None if they are not counted."""
        return None

    @property
    def held_by(self) -> Holder | None:
        """The means to freeze it: the kernel's freezer, or signals that stop its processes; None without any."""
        return None

    def freeze(self) -> None:
        """Start to freeze every process inside; `frozen` tells when it is done. Raises OSError."""

    def frozen(self) -> bool:
        """Return whether every process inside is frozen. Raises OSError."""
        return False

    def begin(self, family: Family) -> None:
        """Take this family as the slice's processes; a cgroup knows its own."""
        return

    def thaw(self) -> None:
        """Let every process inside go on, even if the slice is not frozen. Raises OSError."""

    def move(self, processors: Sequence[int]) -> None:
        """Move all frozen processes inside to these processors. Raises NotIsolatedError if the kernel does not confirm
        it."""

    def kill(self) -> None:
        """Kill every process inside and wait until none is left. Raises NotIsolatedError if some survive."""

    def remove(self) -> None:
        """Remove the empty slice. Raises NotIsolatedError if the kernel keeps it."""


class Backend(Protocol):
    """One way to isolate tenants; `unenforced` names the limits that it does not enforce."""

    name: str
    unenforced: tuple[str, ...]
    oom_group: bool = True
    """True: when memory runs out, all processes of a tenant end, if the kernel can do so; False: one does."""

    def probe(self) -> Refusal | None:
        """Return why this backend is not fully available here; None if it is."""

    def sweep(self) -> list[str]:
        """Kill and remove cgroups left by the same owner's dead runs; return their names."""
        return []

    def elsewhere(self) -> tuple[Path, ...]:
        """Return the cgroups of this owner's runs in other PID namespaces that may still run; never raises."""
        return ()

    def open(self, run: RunName) -> None:
        """Make the parent of this run's slices, after sweeping the remains of dead runs of the same owner."""

    def create(self, slice_: Slice) -> LiveSlice:
        """Make a fresh slice. Raises NotIsolatedError."""

    def close(self) -> None:
        """Kill and remove everything left of this run. Raises NotIsolatedError."""

    def location(self) -> Location:
        """Return the facts that `leftovers.clear_slices` needs to do the same after this process's death."""
        return {}


def expected(slice_: Slice) -> dict[str, object]:
    """Return a slice's plan in the form of records."""
    return {
        "processors": format_list(slice_.processors),
        "nodes": format_list(slice_.nodes),
        "memory_bytes": slice_.memory_bytes,
        "accelerators": [accelerator.uuid for accelerator in slice_.accelerators],
    }


def unenforced_of(backend: Backend, back: ReadBack, sharers: int) -> list[str]:
    """Return the unenforced resources of a slice with these values; `sharers` tenants have its processors."""
    return [*backend.unenforced, *([WEIGHT] if sharers > 1 and back.cpu_weight is None else [])]
