"""One tenant's slice in a v2 cgroup: its limits written, read back, and counted."""

from __future__ import annotations

import os
from collections.abc import Set
from pathlib import Path

from cotenant.isolation import cgroupfs, counting
from cotenant.isolation.backend import PIDS_MAX, Counters, NotIsolatedError, ReadBack
from cotenant.isolation.entry import entry_of
from cotenant.isolation.plan import Slice
from cotenant.isolation.shares import pids_share
from cotenant.isolation.v2group import Group
from cotenant.procfs import format_list


class V2Slice:
    """One tenant of one launch lives here. Made whole by `make`, or not at all."""

    def __init__(self, directory: Path, slice_: Slice, controllers: Set[str], oom_group: bool) -> None:
        """`controllers`: what its parent hands down. `oom_group`: out of memory, all of it ends, not one process."""
        self._directory = directory
        self._group = Group(directory)
        self._slice = slice_
        self._controllers = controllers
        self._oom_group = str(int(oom_group))
        self._pids_max = PIDS_MAX
        # Without cpusets it binds itself: a tenant could undo that, and `unenforced` says so.
        self.entry = entry_of(slice_, (directory / "cgroup.procs",), set_affinity="cpuset" not in controllers)

    def make(self) -> None:
        """Make the directory and set every limit before anything can enter. Raises OSError, or ValueError."""
        cgroupfs.make(self._directory)
        if "cpuset" in self._controllers:
            self._write("cpuset.cpus", format_list(self._slice.processors))
            self._write("cpuset.mems", format_list(self._slice.nodes))
        self._write("memory.max", str(self._slice.memory_bytes))
        for name, text in (("memory.swap.max", "0"), ("memory.oom.group", self._oom_group)):
            # Without swap accounting the backend says so; before Linux 4.19 the runner alone ends the rest of a group.
            if (self._directory / name).exists():
                self._write(name, text)
        if "pids" in self._controllers:
            self._pids_max = pids_share(self._directory.parent, self._slice.slices)
            self._write("pids.max", str(self._pids_max))

    def verify(self) -> ReadBack:
        try:
            back = self._read_back()
        except (OSError, ValueError) as error:
            raise NotIsolatedError(f"the slice of tenant {self._slice.tenant} cannot be read back: {error}") from error
        # The kernel rounds down to its own page, which is 64 KiB on some machines.
        memory_bytes = self._slice.memory_bytes - self._slice.memory_bytes % os.sysconf("SC_PAGE_SIZE")
        # A slice may be given processors that its parent does not have: the kernel takes them, and leaves them out.
        if back.processors is not None:
            self._compare("processors", back.processors, format_list(self._slice.processors))
            self._compare("nodes", back.nodes, format_list(self._slice.nodes))
        self._compare("bytes of memory", back.memory_bytes, memory_bytes)
        if back.memory_and_swap_bytes is not None:
            self._compare("bytes of memory and swap", back.memory_and_swap_bytes, memory_bytes)
        if back.pids_max is not None:
            self._compare("processes", back.pids_max, str(self._pids_max))
        if back.oom_group is not None:
            self._compare("memory.oom.group", back.oom_group, self._oom_group)
        return back

    def counters(self) -> Counters:
        at = self._directory
        used_us = counting.field(at / "cpu.stat", "usage_usec")
        throttled_ns, throttled_times = counting.throttled(cgroupfs.above(at, "cpu.stat"), "throttled_usec", 1000)
        return Counters(
            processor_ns=None if used_us is None else used_us * 1000,
            throttled_ns=throttled_ns,
            throttled_times=throttled_times,
            **counting.stalls(at),
            memory_peak_bytes=counting.number(at / "memory.peak"),
            pids=counting.number(at / "pids.current"),
            pids_peak=counting.number(at / "pids.peak"),
            pids_refused=counting.field(at / "pids.events", "max"),
            oom_events=counting.field(at / "memory.events", "oom"),
            oom_kills=self.oom_kills(),
            oom_group_kills=counting.field(at / "memory.events", "oom_group_kill"),
        )

    def oom_kills(self) -> int | None:
        return counting.field(self._directory / "memory.events", "oom_kill")

    def memory_used_bytes(self) -> int | None:
        return counting.number(self._directory / "memory.current")

    def kill(self) -> None:
        self._group.kill()

    def remove(self) -> None:
        self._group.remove()

    def _read_back(self) -> ReadBack:
        """Ask for what holds: a file may accept what its parent does not grant."""
        at, cpusets = self._directory, "cpuset" in self._controllers
        limits = [cgroupfs.read(file) for file in cgroupfs.above(at, "memory.max")]
        memory_bytes = min((int(limit) for limit in limits if limit != "max"), default=None)
        swap = cgroupfs.read_or_none(at / "memory.swap.max")
        return ReadBack(
            processors=cgroupfs.read(at / "cpuset.cpus.effective") if cpusets else None,
            nodes=cgroupfs.read(at / "cpuset.mems.effective") if cpusets else None,
            memory_bytes=memory_bytes,
            memory_and_swap_bytes=None if swap is None or memory_bytes is None else memory_bytes + int(swap),
            pids_max=cgroupfs.read(at / "pids.max") if "pids" in self._controllers else None,
            oom_group=cgroupfs.read_or_none(at / "memory.oom.group"),
        )

    def _compare(self, what: str, got: object, planned: object) -> None:
        if got != planned:
            raise NotIsolatedError(
                f"tenant {self._slice.tenant} was planned with {what} {planned}, but {self._directory} holds {got}"
            )

    def _write(self, name: str, text: str) -> None:
        cgroupfs.write(self._directory / name, text)
