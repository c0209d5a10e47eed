"""The protocol of every backend, and the types that pass over it. Standard library only: the reaper uses it too."""

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
"""Names the property that is missing where tenants share processors and no cgroup has them take equal time of these."""


Holder = Literal["freezer", "stopped"]


class NotIsolatedError(OSError):
    """A slice differs from its plan. The text has the request, and the kernel's answer."""


class UnkillableError(NotIsolatedError):
    """Processes that outlive SIGKILL, as they wait inside the kernel."""


class NotExecutableError(NotIsolatedError):
    """A command with words and variables too many for any process; its slice is not to blame."""


@dataclass(frozen=True, slots=True)
class SliceEntry:
    """The needs of enter.py: the files to write `0` to, and the processors it must find itself on.

    `shm_bytes`: the size of a /dev/shm of the tenant's own; 0 leaves it the machine's.
    """

    procs_files: tuple[Path, ...] = ()
    processors: tuple[int, ...] | None = None
    set_affinity: bool = False
    shm_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ReadBack:
    """The kernel's answer about a slice; None where this backend cannot ask."""

    processors: str | None = None
    nodes: str | None = None
    memory_bytes: int | None = None
    memory_and_swap_bytes: int | None = None
    pids_max: str | None = None
    cpu_weight: str | None = None
    """The weight of its processor time beside others on the same processors: `cpu.weight`, or v1's `cpu.shares`."""
    oom_group: str | None = None
    """`1`: out of memory, all of it ends; `0`: one process."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Cumulative counters of a slice; None where this backend or kernel does not count.

    `throttled_*`: how often, and how long, a quota of the slice or of a cgroup above it held it back.
    `stalled_*` are the totals of pressure stall information, in microseconds: `some` of its tasks waited, or all that
    could run (`full`).
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
    """Page cache of files, which the kernel takes back where memory is short."""
    pids: int | None = None
    pids_peak: int | None = None
    pids_refused: int | None = None
    oom_events: int | None = None
    """How often the slice's own limit left no memory to be had, whether that killed somebody or not."""
    oom_kills: int | None = None
    oom_group_kills: int | None = None

    def at_end(self, done: Counters) -> Counters:
        """Return these with amounts that flow as they were at the last DONE, if read; peaks and events as they are."""
        then = {
            name: value for name in (*FLOWS, "memory_cache_bytes", "pids") if (value := getattr(done, name)) is not None
        }
        return dataclasses.replace(self, **then)

    def since(self, before: Counters) -> Counters:
        """Return the flows since `before`, where that was read; peaks and events as they are."""
        pairs = {name: (getattr(before, name), getattr(self, name)) for name in FLOWS}
        flows = {name: then - first for name, (first, then) in pairs.items() if None not in (first, then)}
        return dataclasses.replace(self, **flows)

    def uncounted(self) -> list[str]:
        """Return the names of counters that are missing."""
        return [counter.name for counter in dataclasses.fields(self) if getattr(self, counter.name) is None]


FLOWS = tuple(
    counter.name
    for counter in dataclasses.fields(Counters)
    if counter.name.startswith(("processor_", "throttled_", "stalled_"))
)
"""The counters of interest as a difference between GO and the last DONE."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a backend cannot be had, as the rest of a sentence, and the remedy, which may be empty.

    `partial`: it would serve all the same, without the essential part of a slice that its `unenforced` names.
    """

    reason: str
    remedy: str = ""
    partial: bool = False


SETUP_SCRIPT = "sudo ./cgroup_setup.sh"
ENGINES = ("Docker", "Podman", "Kubernetes")


def remedy_inside(otherwise: str) -> str:
    """Return the remedy for cgroups that a batch system or a container's engine keeps; on a host itself `otherwise`."""
    if batch := batch_system():
        return f"{batch} keeps the cgroups of its jobs: as root, outside of a job, there are slices (docs/clusters.md)."
    if (container := virtual().container) in ENGINES:
        return (
            f"Inside {container} slices take a privileged container, as root, whose command is the suite "
            "(docs/clusters.md)."
        )
    return otherwise


Location = dict[str, Any]
"""Where a backend keeps its runs, as JSON can hold it; empty without cgroups."""


class LiveSlice(Protocol):
    """A slice that exists: one tenant of one launch lives in it."""

    entry: SliceEntry

    def verify(self) -> ReadBack:
        """Compare the kernel's word with the plan. Raises NotIsolatedError."""

    def changes(self, pids: Collection[int]) -> list[str]:
        """Return in sentences the deviations from the plan: limits, a peak, and who of these processes has left.

        Never raises.
        """
        return []

    def counters(self) -> Counters:
        """Return the counters now; never raises: a counter that cannot be read is missing."""

    def processor_ns(self) -> int | None:
        """Return that counter alone, which is read several times a second while tenants are timed."""
        return None

    def oom_kills(self) -> int | None:
        """Return that counter alone, which is cheap enough to be asked for while tenants are timed."""
        return None

    def memory_used_bytes(self) -> int | None:
        """Return the bytes the kernel charges to it now, its page cache included; None where nobody counts that."""
        return None

    @property
    def held_by(self) -> Holder | None:
        """The means that hold it still: the kernel's freezer, or signals that stop its processes; None without any."""
        return None

    def freeze(self) -> None:
        """Have every process inside held still; `frozen` says when they are. Raises OSError."""

    def frozen(self) -> bool:
        """Whether every process inside is held still. Raises OSError."""
        return False

    def begin(self, family: Family) -> None:
        """Take these processes for those inside; a cgroup knows its own."""
        return

    def thaw(self) -> None:
        """Let every process inside go on, also of a slice that nobody has frozen. Raises OSError."""

    def move(self, processors: Sequence[int]) -> None:
        """Have everybody inside, who is held still, run on these processors from now on. Raises NotIsolatedError where
        the kernel does not say that they do."""

    def kill(self) -> None:
        """Kill every process inside and wait until none is left. Raises NotIsolatedError if some survive."""

    def remove(self) -> None:
        """Remove the empty slice. Raises NotIsolatedError if the kernel holds on to it."""


class Backend(Protocol):
    """One way to isolate tenants; `unenforced` names the limits that it does not hold."""

    name: str
    unenforced: tuple[str, ...]
    oom_group: bool = True
    """Whether memory that is full ends all of a tenant, where the kernel can do so, or one process of it."""

    def probe(self) -> Refusal | None:
        """Return why this backend cannot be had here as it should be, or None where it can."""

    def sweep(self) -> list[str]:
        """Kill and remove the leftovers of the same owner's dead runs in cgroups; return their names."""
        return []

    def elsewhere(self) -> tuple[Path, ...]:
        """Return the cgroups of this owner's runs in other PID namespaces that may still go on; never raises."""
        return ()

    def open(self, run: RunName) -> None:
        """Make the parent of this run's slices, after sweeping the remains of dead runs of the same owner."""

    def create(self, slice_: Slice) -> LiveSlice:
        """Make a fresh slice. Raises NotIsolatedError."""

    def close(self) -> None:
        """Kill and remove whatever is left of this run. Raises NotIsolatedError."""

    def location(self) -> Location:
        """Return the facts that `leftovers.clear` needs to do the same after our death."""
        return {}


def expected(slice_: Slice) -> dict[str, object]:
    """Return the plan, in the shape records keep."""
    return {
        "processors": format_list(slice_.processors),
        "nodes": format_list(slice_.nodes),
        "memory_bytes": slice_.memory_bytes,
        "accelerators": [accelerator.uuid for accelerator in slice_.accelerators],
    }


def unenforced_of(backend: Backend, back: ReadBack, sharers: int) -> list[str]:
    """Return the resources that nobody holds, of a slice that reads back so; `sharers` tenants have its processors."""
    return [*backend.unenforced, *([WEIGHT] if sharers > 1 and back.cpu_weight is None else [])]
