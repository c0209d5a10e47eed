"""The common part of v1's and v2's slices, which are read back, counted and ended; and limits on processes."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from cotenant.isolation import cgroupfs
from cotenant.isolation.backend import Backend, Counters, Holder, LiveSlice, NotIsolatedError, ReadBack
from cotenant.isolation.entry import entry_of
from cotenant.isolation.group import Group
from cotenant.isolation.runs import RunName
from cotenant.isolation.slice import Slice
from cotenant.procfs import described, format_list, numbered, read_text, status_of
from cotenant.text import listed

PIDS_LEAST = 4
"""torch has this many threads on one processor."""
PIDS_MAX = 16384
"""Far above training's need, and half of a small host's limit: a fork bomb ends in its own slice."""
KEPT_BACK = 0.1
"""The share of the allowed processes that is left to the runner and others."""
PEAK_ROOM = 1.02
"""The kernel lets a process that it is killing, and itself, exceed the limit slightly."""
Throttled = tuple[int | None, int | None]
"""Nanoseconds and times; None if they are not counted."""


class CgroupSlice(LiveSlice):
    """The slice of one tenant of one launch. Its backend makes it whole, or not at all."""

    cpu_weight: str
    """The kernel gives every new cgroup this weight, so that tenants of the same processors get equal time."""
    counted: Mapping[str, Sequence[str]]
    """Counters with one value, by name: controller, file, and the names in it if the file has several."""

    def __init__(self, group: Group, slice_: Slice, set_affinity: bool = False) -> None:
        self._group = group
        self._slice = slice_
        self._pids_max = PIDS_MAX
        procs_files = tuple(directory / "cgroup.procs" for directory in group.directories)
        self.entry = entry_of(slice_, procs_files, set_affinity)

    def verify(self) -> ReadBack:
        try:
            back = self._read_back()
        except (OSError, ValueError) as error:
            raise NotIsolatedError(f"the slice of user {self._slice.tenant} cannot be read back: {error}") from error
        for difference in self._differences(back):
            raise NotIsolatedError(difference)
        return back

    def changes(self, pids: Collection[int]) -> list[str]:
        planned = f"user {self._slice.tenant} was planned"
        try:
            sentences = [f"{difference} now" for difference in self._differences(self._read_back())]
            left = sorted(self._group.outside(pids))
        except (OSError, ValueError) as error:
            return [f"{planned} in a slice that cannot be read any more: {error}"]
        if left:
            sentences.append(f"{planned} in its slice, but {listed(map(described, left), 3)} left it")
        peak_bytes, limit_bytes = self.counters().memory_peak_bytes or 0, self._slice.memory_bytes
        if peak_bytes > PEAK_ROOM * limit_bytes:
            sentences.append(f"{planned} with bytes of memory {limit_bytes}, but has held {peak_bytes}")
        return sentences

    def counters(self) -> Counters:
        throttled_ns, throttled_times = self._throttled()
        return Counters(
            processor_ns=self.processor_ns(),
            throttled_ns=throttled_ns,
            throttled_times=throttled_times,
            **self._stalled_us(),
            **{name: self._count(*place) for name, place in self.counted.items()},
        )

    def _stalled_us(self) -> dict[str, int]:
        """Return its stall totals by their names in Counters; none if the kernel counts none."""
        return {}

    def oom_kills(self) -> int | None:
        return self._count(*self.counted["oom_kills"])

    def _throttled(self) -> Throttled:
        """Return how long and how often quotas held back the processes inside."""
        raise NotImplementedError

    def _count(self, controller: str, file: str, *names: str) -> int | None:
        """Return the number in a file, or the sum beside `names`; None if it is not counted here."""
        return count_in(self._place_of(controller) / file, *names)

    def make(self) -> None:
        """Make it with every limit before anything can enter. Raises OSError, ValueError."""
        raise NotImplementedError

    @property
    def held_by(self) -> Holder | None:
        return "freezer" if self._group.can_freeze else None

    def freeze(self) -> None:
        self._group.freeze()

    def frozen(self) -> bool:
        return self._group.frozen()

    def thaw(self) -> None:
        if self._group.can_freeze:
            self._group.thaw()

    def move(self, processors: Sequence[int]) -> None:
        planned = format_list(processors)
        try:
            found = self._move(processors)
        except OSError as error:
            raise NotIsolatedError(f"user {self._slice.tenant} cannot be moved to {planned}: {error}") from error
        if found != planned:
            raise NotIsolatedError(f"user {self._slice.tenant} was to run on {planned}, and is on {found}")

    def _move(self, processors: Sequence[int]) -> str:
        """Write the processors; return the effective ones. Raises OSError."""
        raise NotImplementedError

    def kill(self) -> None:
        self._group.kill()

    def remove(self) -> None:
        self._group.remove()

    def _read_back(self) -> ReadBack:
        """Read the values in force: a file may accept more than its parent grants. Raises OSError, ValueError."""
        raise NotImplementedError

    def _place_of(self, controller: str) -> Path:
        """Return the directory of this controller's files."""
        raise NotImplementedError

    def _differences(self, back: ReadBack) -> Iterator[str]:
        for what, actual, planned, place in self._comparisons(back):
            # None is a value that this kernel cannot tell; it can always tell memory's.
            if actual != planned and (actual is not None or what == "bytes of memory"):
                yield f"user {self._slice.tenant} was planned with {what} {planned}, but {place} holds {actual}"

    def _comparisons(self, back: ReadBack) -> Iterator[tuple[str, object, object, Path]]:
        """Yield each value read back, with the planned one and the place it was read from."""
        cpu, cpuset, memory, pids = map(self._place_of, ("cpu", "cpuset", "memory", "pids"))
        # The kernel rounds down to its own page, which is 64 KiB on some machines.
        memory_bytes = self._slice.memory_bytes - self._slice.memory_bytes % os.sysconf("SC_PAGE_SIZE")
        yield "processors", back.processors, format_list(self._slice.processors), cpuset
        yield "nodes", back.nodes, format_list(self._slice.nodes), cpuset
        yield "bytes of memory", back.memory_bytes, memory_bytes, memory
        yield "bytes of memory and swap", back.memory_and_swap_bytes, memory_bytes, memory
        yield "a weight of processor time of", back.cpu_weight, self.cpu_weight, cpu
        yield "processes", back.pids_max, str(self._pids_max), pids


class CgroupBackend(Backend):
    """Common part of the backends v1 and v2: a run is opened, gets its slices, and is closed."""

    _run: RunName | None = None

    def open(self, run: RunName) -> None:
        """Sweep dead runs and make the parent of this run's slices. Raises NotIsolatedError."""
        self.sweep()
        self._run = run
        try:
            self._make_run(str(run))
        except OSError as error:
            with contextlib.suppress(NotIsolatedError):
                self.close()
            raise NotIsolatedError(f"the parent of this run's slices cannot be made: {error}") from error

    def create(self, slice_: Slice) -> CgroupSlice:
        assert self._run is not None
        live = self._slice(f"{self._run}/t{slice_.tenant}", slice_)
        try:
            live.make()
        except (OSError, ValueError) as error:
            # A cgroup that cannot be removed now is left to close(); the first reason counts.
            if not isinstance(error, FileExistsError):
                with contextlib.suppress(NotIsolatedError):
                    live.remove()
            raise NotIsolatedError(f"the slice of user {slice_.tenant} cannot be made: {error}") from error
        return live

    def close(self) -> None:
        if self._run is not None:
            self.clear_run(str(self._run))
            self._run = None

    def clear_run(self, run: str) -> None:
        """Kill everything in a run and remove it. Raises NotIsolatedError."""
        raise NotImplementedError

    def _make_run(self, run: str) -> None:
        """Make the parent of a run's slices. Raises OSError."""
        raise NotImplementedError

    def _slice(self, path: str, slice_: Slice) -> CgroupSlice:
        """Return the slice at a path below the base, before anything is made."""
        raise NotImplementedError


def count_in(path: Path, *names: str) -> int | None:
    """Return the number in a file, or the sum beside `names`; None if one is not counted: no reading fails a launch."""
    try:
        numbers = [cgroupfs.field(path, name) for name in names] or [int(cgroupfs.read(path))]
    except (OSError, ValueError):
        return None
    values = [number for number in numbers if number is not None]
    return sum(values) if len(values) == len(numbers) else None


def throttled_time(stats: Iterable[Path], name: str, unit_ns: int) -> Throttled:
    """Return (nanoseconds, times) that the quotas of these cgroups held their members back, from each `cpu.stat`.

    `name` is the field of the time, in units of `unit_ns`. A cgroup without a quota or the controller counts none.
    """
    readings = [(count_in(path, name), count_in(path, "nr_throttled")) for path in stats]
    units = [units for units, _ in readings if units is not None]
    times = [times for _, times in readings if times is not None]
    return sum(units) * unit_ns if units else None, sum(times) if times else None


def pids_share(parent: Path, slices: int) -> int:
    """Return the most processes of one of `slices` slices below `parent`: an equal part of the number free above them.

    It keeps all slices together below every limit above them, this user's own limit included. It is at most PIDS_MAX.
    Raises OSError, and ValueError for a file that holds no number, or for too small a part.
    """
    rooms = [_room(file) for file in cgroupfs.above(parent, "pids.max")] + [user_room()]
    shares = [int(room * (1 - KEPT_BACK)) // slices for room in rooms if room is not None]
    share = max(0, min([PIDS_MAX, *shares]))
    if share < PIDS_LEAST:
        raise ValueError(
            f"a limit on processes leaves {share} processes and threads to each of {slices} slices, and torch needs "
            f"{PIDS_LEAST}: raise ulimit -u, TasksMax or pids.max, or use fewer --users"
        )
    return share


def user_room() -> int | None:
    """Return the number of processes, threads included, that this user may add; None without a limit (getrlimit(2)).

    The limit, RLIMIT_NPROC, covers everything of a user, so that one tenant could use up its neighbours' part. Root is
    exempt from it, but not the root of a user namespace.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if limit == resource.RLIM_INFINITY or (os.getuid() == 0 and _maps_all_users()):
        return None
    return limit - sum(_own_threads(pid) for pid in numbered(Path("/proc")))


def _maps_all_users() -> bool:
    """Return whether this is the host's own user namespace, or one like it (user_namespaces(7))."""
    return read_text(Path("/proc/self/uid_map")).split() in ([], ["0", "0", "4294967295"])


def _own_threads(pid: int) -> int:
    """Return the threads of a process of this user, 0 if it is gone or another user's."""
    status = status_of(pid)
    return int(status["Threads"]) if status and status["Uid"].split()[0] == str(os.getuid()) else 0


def _room(file: Path) -> int | None:
    limit, current = cgroupfs.read_or_none(file), cgroupfs.read_or_none(file.with_name("pids.current"))
    return None if limit in (None, "max") else int(limit or 0) - int(current or 0)
