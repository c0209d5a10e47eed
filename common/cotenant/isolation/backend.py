"""The protocol every backend speaks, and what passes over it. Standard library only: the reaper uses it too."""

from __future__ import annotations

import dataclasses
import os
import pwd
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from cotenant.isolation import namespaces
from cotenant.isolation.plan import Slice
from cotenant.procfs import format_list

PIDS_MAX = 16384
"""Far above what training needs, and half of what a small host can hold: a fork bomb ends in its own slice."""

OURS = "cotenant"
"""A base whose name begins so is made and removed with its runs; any other has to be there, and stays."""


class NotIsolatedError(OSError):
    """A slice that is not what was planned. The text says what was asked, and what the kernel answered."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What enter.py needs: the files to write `0` to, and the processors it must find itself on.

    `shm_bytes`: the size of a /dev/shm of the tenant's own; 0 leaves it the machine's.
    """

    procs_files: tuple[Path, ...] = ()
    processors: tuple[int, ...] | None = None
    set_affinity: bool = False
    shm_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What the kernel says a slice is; None is what this backend cannot ask."""

    processors: str | None = None
    nodes: str | None = None
    memory_bytes: int | None = None
    memory_and_swap_bytes: int | None = None
    pids_max: str | None = None
    oom_group: str | None = None
    """`1`: out of memory, all of it ends; `0`: one process."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Cumulative counters of a slice; None is what this backend or kernel does not count.

    `throttled_*` count what a quota of the slice or of a cgroup above it held back. `stalled_*` are the totals of
    pressure stall information, in microseconds: `some` of its tasks waited, or all that could run (`full`).
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
    pids: int | None = None
    pids_peak: int | None = None
    pids_refused: int | None = None
    oom_events: int | None = None
    """How often the slice's own limit left no memory to be had, whether that killed somebody or not."""
    oom_kills: int | None = None
    oom_group_kills: int | None = None

    def at_end(self, done: Counters) -> Counters:
        """Return these with what flows as it was at the last DONE, if that was read; peaks and events as they are."""
        then = {name: getattr(done, name) for name in (*FLOWS, "pids")}
        return dataclasses.replace(self, **{name: value for name, value in then.items() if value is not None})

    def since(self, before: Counters) -> Counters:
        """Return what has flowed since `before`, where that was read; peaks and events as they are."""
        pairs = {name: (getattr(before, name), getattr(self, name)) for name in FLOWS}
        return dataclasses.replace(
            self,
            **{name: then - first for name, (first, then) in pairs.items() if None not in (first, then)},
        )

    def uncounted(self) -> list[str]:
        """Return the names of what was not counted."""
        return [one.name for one in dataclasses.fields(self) if getattr(self, one.name) is None]


FLOWS = tuple(
    one.name
    for one in dataclasses.fields(Counters)
    if one.name == "processor_ns" or one.name.startswith(("throttled_", "stalled_"))
)
"""What is of interest as a difference between GO and the last DONE."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a backend cannot be had, as the rest of a sentence, and the remedy, which may be empty.

    `partial`: it would serve all the same, without the essential part of a slice that its `unenforced` names.
    """

    reason: str
    remedy: str = ""
    partial: bool = False


Location = dict[str, Any]
"""Where a backend keeps its runs, as JSON can hold it; empty without cgroups."""


class LiveSlice(Protocol):
    """A slice that exists: one tenant of one launch lives in it."""

    entry: Entry

    def verify(self) -> ReadBack:
        """Compare the kernel's word with the plan. Raises NotIsolatedError."""

    def counters(self) -> Counters:
        """Return the counters now; never raises: what cannot be read is not counted."""

    def oom_kills(self) -> int | None:
        """Return that counter alone, which is cheap enough to be asked for while tenants are timed."""

    def memory_used_bytes(self) -> int | None:
        """Return what the kernel charges to it now, its page cache included; None where nobody counts that."""

    def kill(self) -> None:
        """Kill every process inside and wait until none is left. Raises NotIsolatedError if some survive."""

    def remove(self) -> None:
        """Remove the empty slice. Raises NotIsolatedError if the kernel holds on to it."""


class Backend(Protocol):
    """One way to isolate tenants; `unenforced` names what it does not hold."""

    name: str
    unenforced: tuple[str, ...]

    def probe(self) -> Refusal | None:
        """Return why this backend cannot be had here as it should be, or None where it can."""

    def sweep(self) -> list[str]:
        """Kill and remove what dead runs of the same owner left in cgroups; return their names."""

    def elsewhere(self) -> tuple[Path, ...]:
        """Return the cgroups of this owner's runs in other PID namespaces that may still go on; never raises."""

    def open(self, run: RunName) -> None:
        """Make the parent of this run's slices, after sweeping what dead runs of the same owner left."""

    def create(self, slice_: Slice) -> LiveSlice:
        """Make a fresh slice. Raises NotIsolatedError."""

    def close(self) -> None:
        """Kill and remove whatever is left of this run. Raises NotIsolatedError."""

    def location(self) -> Location:
        """Return what `leftovers.clear` has to know to do the same after our death."""


@dataclass(frozen=True, slots=True)
class RunName:
    """Names a run after its runner's process, so that a dead run is known from its name alone.

    `namespace` is the inode of the PID namespace that the number is one of.
    """

    pid: int = field(default_factory=os.getpid)
    start_ticks: int = field(default_factory=lambda: start_ticks(os.getpid()) or 0)
    namespace: int = field(default_factory=namespaces.namespace_of)

    def __str__(self) -> str:
        return f"{self.pid}-{self.start_ticks}-{self.namespace}"

    @classmethod
    def parse(cls, text: str) -> RunName | None:
        """Return the name a directory carries, or None where it is not one of ours."""
        parts = text.split("-")
        if len(parts) != len(cls.__slots__) or not all(part.isdecimal() for part in parts):
            return None
        name = cls(*map(int, parts))
        return name if str(name) == text else None

    @property
    def is_elsewhere(self) -> bool:
        """Whether its runner lives, or lived, in another PID namespace than we do."""
        return self.namespace != namespaces.namespace_of()

    @property
    def alive(self) -> bool | None:
        """Whether its runner lives; None of one elsewhere, where that cannot be seen from here."""
        if not self.is_elsewhere:
            return start_ticks(self.pid) == self.start_ticks
        # Its start is told by another clock where it has a time namespace, too (time_namespaces(7)).
        living = [pid for pid in namespaces.seen_from_above(self.pid) if start_ticks(pid) is not None]
        if any(namespaces.namespace_of(pid) == self.namespace for pid in living):
            return True
        return False if namespaces.namespace_of() == namespaces.INITIAL else None


def runs_below(homes: Iterable[Path]) -> list[RunName]:
    """Return the runs that have a directory in any of these."""
    names = {path.name for home in homes for path in home.glob("*-*") if path.is_dir()}
    return [run for name in sorted(names) if (run := RunName.parse(name)) is not None]


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks after boot; None where it is gone, a zombie, or hidden from us."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def owner() -> str:
    """Return the login that slices are named after."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def expected(slice_: Slice) -> dict[str, object]:
    """Return what was planned, in the shape records keep."""
    return {
        "processors": format_list(slice_.processors),
        "nodes": format_list(slice_.nodes),
        "memory_bytes": slice_.memory_bytes,
        "accelerators": [accelerator.uuid for accelerator in slice_.accelerators],
    }
