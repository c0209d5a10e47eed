"""One tenant's slice in v1 cgroups: its limits written, read back, and counted."""

from __future__ import annotations

import os

from cotenant.isolation import cgroupfs
from cotenant.isolation.backend import Counters, Entry, NotIsolatedError, ReadBack
from cotenant.isolation.plan import Slice
from cotenant.isolation.v1group import Group
from cotenant.machine.cpulist import format_list

PIDS_MAX = 16384
"""Far above what training needs, and half of what a small host can hold: a fork bomb ends in its own slice."""


class V1Slice:
    """One tenant of one launch lives here. Made whole by `make`, or not at all."""

    def __init__(self, group: Group, slice_: Slice) -> None:
        self._group = group
        self._slice = slice_
        self.entry = Entry(
            procs_files=tuple(directory / "cgroup.procs" for directory in group.directories),
            processors=slice_.processors,
        )

    def make(self) -> None:
        """Make the directories and set every limit before anything can enter. Raises OSError."""
        self._group.make()
        at = self._group.at
        cgroupfs.write(at["cpuset"] / "cpuset.cpus", format_list(self._slice.processors))
        cgroupfs.write(at["cpuset"] / "cpuset.mems", format_list(self._slice.nodes))
        cgroupfs.write(at["memory"] / "memory.limit_in_bytes", str(self._slice.memory_bytes))
        # Memory first: memory and swap together may not be less.
        if self._swap() is not None:
            cgroupfs.write(at["memory"] / "memory.memsw.limit_in_bytes", str(self._slice.memory_bytes))
        if "pids" in at:
            cgroupfs.write(at["pids"] / "pids.max", str(PIDS_MAX))

    def verify(self) -> ReadBack:
        try:
            back = self._read_back()
        except (OSError, ValueError) as error:
            raise NotIsolatedError(f"the slice of tenant {self._slice.tenant} cannot be read back: {error}") from error
        # The kernel rounds down to its own page, which is 64 KiB on some machines.
        memory_bytes = self._slice.memory_bytes - self._slice.memory_bytes % os.sysconf("SC_PAGE_SIZE")
        self._compare("cpuset", "processors", back.processors, format_list(self._slice.processors))
        self._compare("cpuset", "nodes", back.nodes, format_list(self._slice.nodes))
        self._compare("memory", "bytes of memory", back.memory_bytes, memory_bytes)
        if back.memory_and_swap_bytes is not None:
            self._compare("memory", "bytes of memory and swap", back.memory_and_swap_bytes, memory_bytes)
        if back.pids_max is not None:
            self._compare("pids", "processes", back.pids_max, str(PIDS_MAX))
        return back

    def counters(self) -> Counters:
        return Counters(
            processor_ns=self._number("cpuacct", "cpuacct.usage"),
            memory_peak_bytes=self._number("memory", "memory.max_usage_in_bytes"),
            pids=self._number("pids", "pids.current"),
            oom_kills=cgroupfs.field(self._group.at["memory"] / "memory.oom_control", "oom_kill"),
        )

    def kill(self) -> None:
        self._group.kill()

    def remove(self) -> None:
        self._group.remove()

    def _read_back(self) -> ReadBack:
        """Ask for what holds, where the kernel can say it: a file may accept what its parent does not grant."""
        at = self._group.at
        limit = int(cgroupfs.read(at["memory"] / "memory.limit_in_bytes"))
        above = cgroupfs.field(at["memory"] / "memory.stat", "hierarchical_memory_limit")
        return ReadBack(
            processors=self._effective("cpus"),
            nodes=self._effective("mems"),
            memory_bytes=limit if above is None else min(limit, above),
            memory_and_swap_bytes=self._swap(),
            pids_max=cgroupfs.read(at["pids"] / "pids.max") if "pids" in at else None,
        )

    def _effective(self, what: str) -> str:
        cpuset = self._group.at["cpuset"]
        effective = cgroupfs.read_or_none(cpuset / f"cpuset.effective_{what}")
        return cgroupfs.read(cpuset / f"cpuset.{what}") if effective is None else effective

    def _swap(self) -> int | None:
        return self._number("memory", "memory.memsw.limit_in_bytes")

    def _compare(self, controller: str, what: str, got: object, planned: object) -> None:
        if got != planned:
            raise NotIsolatedError(
                f"tenant {self._slice.tenant} was planned with {what} {planned}, "
                f"but {self._group.at[controller]} holds {got}"
            )

    def _number(self, controller: str, file: str) -> int | None:
        if controller not in self._group.at:
            return None
        text = cgroupfs.read_or_none(self._group.at[controller] / file)
        return int(text) if text is not None else None
