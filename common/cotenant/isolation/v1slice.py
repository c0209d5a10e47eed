"""One tenant's slice in v1 cgroups: its limits written, read back, and counted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from cotenant.isolation import cgroupfs, counting
from cotenant.isolation.backend import PIDS_MAX, Counters, NotIsolatedError, ReadBack
from cotenant.isolation.entry import entry_of
from cotenant.isolation.plan import Slice
from cotenant.isolation.shares import pids_share
from cotenant.isolation.v1group import Group
from cotenant.machine.limits import V2
from cotenant.procfs import format_list


class V1Slice:
    """One tenant of one launch lives here. Made whole by `make`, or not at all."""

    def __init__(self, group: Group, slice_: Slice, quotas: Sequence[Path] = ()) -> None:
        """`quotas`: the cgroups of the controller `cpu` that hold back what lives in the slice, if it has none."""
        self._group = group
        self._slice = slice_
        self._quotas = quotas
        self._pids_max = PIDS_MAX
        self.entry = entry_of(slice_, tuple(directory / "cgroup.procs" for directory in group.directories))

    def make(self) -> None:
        """Make the directories and set every limit before anything can enter. Raises OSError, or ValueError."""
        self._group.make()
        at = self._group.at
        cgroupfs.write(at["cpuset"] / "cpuset.cpus", format_list(self._slice.processors))
        cgroupfs.write(at["cpuset"] / "cpuset.mems", format_list(self._slice.nodes))
        cgroupfs.write(at["memory"] / "memory.limit_in_bytes", str(self._slice.memory_bytes))
        # Memory first: memory and swap together may not be less.
        if self._swap() is not None:
            cgroupfs.write(at["memory"] / "memory.memsw.limit_in_bytes", str(self._slice.memory_bytes))
        if "pids" in at:
            self._pids_max = pids_share(at["pids"].parent, self._slice.slices)
            cgroupfs.write(at["pids"] / "pids.max", str(self._pids_max))

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
            self._compare("pids", "processes", back.pids_max, str(self._pids_max))
        return back

    def counters(self) -> Counters:
        throttled_ns, throttled_times = counting.throttled(self._throttles(), "throttled_time", 1)
        return Counters(
            processor_ns=self._counted("cpuacct", "cpuacct.usage"),
            throttled_ns=throttled_ns,
            throttled_times=throttled_times,
            **(counting.stalls(self._group.at[V2]) if V2 in self._group.at else {}),
            memory_peak_bytes=self._counted("memory", "memory.max_usage_in_bytes"),
            pids=self._counted("pids", "pids.current"),
            pids_peak=self._counted("pids", "pids.peak"),
            pids_refused=self._counted("pids", "pids.events", "max"),
            oom_kills=self.oom_kills(),
        )

    def oom_kills(self) -> int | None:
        return self._counted("memory", "memory.oom_control", "oom_kill")

    def memory_used_bytes(self) -> int | None:
        return self._counted("memory", "memory.usage_in_bytes")

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
        text = cgroupfs.read_or_none(self._group.at["memory"] / "memory.memsw.limit_in_bytes")
        return int(text) if text is not None else None

    def _compare(self, controller: str, what: str, got: object, planned: object) -> None:
        if got != planned:
            raise NotIsolatedError(
                f"tenant {self._slice.tenant} was planned with {what} {planned}, "
                f"but {self._group.at[controller]} holds {got}"
            )

    def _counted(self, controller: str, file: str, name: str | None = None) -> int | None:
        """Return the number in a file, or that beside `name`; None where it is not counted here."""
        if controller not in self._group.at:
            return None
        path = self._group.at[controller] / file
        return counting.number(path) if name is None else counting.field(path, name)

    def _throttles(self) -> Iterable[Path]:
        """Return the `cpu.stat` of every quota on the slice: `cpu` and `cpuacct` may be mounted together."""
        own = self._group.at.get("cpuacct")
        if own is not None and (own / "cpu.stat").exists():
            return cgroupfs.above(own, "cpu.stat")
        return [directory / "cpu.stat" for directory in self._quotas]
