"""Backend `v1`: one directory per controller, direct writes. Small on purpose: v2 is where hosts are.

A run lives in `/cotenant.<login>/<pid>-<start>` of each hierarchy, a tenant's slice in `t<i>` below that.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from cotenant.isolation import cgroupfs
from cotenant.isolation.backend import Counters, Entry, NotIsolatedError, ReadBack, RunName, owner
from cotenant.isolation.plan import Slice
from cotenant.machine.cpulist import format_list, parse

NEEDED = ("cpuset", "memory")
WANTED = ("cpuacct", "freezer", "pids")
KILL_WAIT_S = 5.0


class V1:
    """Slices in the v1 hierarchies mounted at `mounts` (controller -> mount point)."""

    name = "v1"

    def __init__(self, mounts: Mapping[str, Path], base: str | None = None) -> None:
        self._mounts = {name: mounts[name] for name in NEEDED + WANTED if name in mounts}
        self._base = (base or f"cotenant.{owner()}").strip("/")
        self._run: RunName | None = None
        self.unenforced: tuple[str, ...] = () if self._has_swap_limit() else ("swap",)

    def probe(self) -> str | None:
        for name in NEEDED:
            if name not in self._mounts:
                return f"the v1 controller {name} is not mounted"
            if not os.access(self._mounts[name] / self._base, os.W_OK) and not os.access(self._mounts[name], os.W_OK):
                return f"{self._mounts[name]} is not writable"
        return None

    def open(self, run: RunName) -> None:
        """Make the run's directories and sweep dead runs. Raises NotIsolatedError."""
        try:
            self.sweep()
            for mount in self._roots():
                cgroupfs.make(mount / self._base)
                cgroupfs.make(mount / self._base / str(run))
            self._inherit_cpuset(self._mounts["cpuset"], f"{self._base}/{run}")
        except OSError as error:
            raise NotIsolatedError(f"the parent of this run's slices cannot be made: {error}") from error
        self._run = run

    def create(self, slice_: Slice) -> V1Slice:
        assert self._run is not None
        live = V1Slice(self._mounts, f"{self._base}/{self._run}/t{slice_.tenant}", slice_)
        try:
            live.make()
        except OSError as error:
            with contextlib.suppress(OSError):
                live.remove()
            raise NotIsolatedError(f"the slice of tenant {slice_.tenant} cannot be made: {error}") from error
        return live

    def close(self) -> None:
        if self._run is not None:
            self.clear(str(self._run))
            self._run = None

    def sweep(self) -> list[str]:
        """Kill and remove the runs below our base whose runner is dead; return their names."""
        names = {path.name for mount in self._roots() for path in (mount / self._base).glob("*-*") if path.is_dir()}
        dead = [name for name in sorted(names) if (run := RunName.parse(name)) and not run.alive]
        for name in dead:
            self.clear(name)
        return dead

    def clear(self, run: str) -> None:
        """Kill and remove every slice of one run, then its directories."""
        slices = {
            path.name for mount in self._roots() for path in (mount / self._base / run).glob("t*") if path.is_dir()
        }
        for name in sorted(slices):
            live = V1Slice(self._mounts, f"{self._base}/{run}/{name}", None)
            live.kill()
            live.remove()
        for mount in self._roots():
            cgroupfs.remove(mount / self._base / run)
            with contextlib.suppress(OSError):
                (mount / self._base).rmdir()

    def _roots(self) -> set[Path]:
        """The mount points; two controllers mounted together are one."""
        return set(self._mounts.values())

    def _has_swap_limit(self) -> bool:
        return "memory" in self._mounts and (self._mounts["memory"] / "memory.memsw.limit_in_bytes").exists()

    @staticmethod
    def _inherit_cpuset(mount: Path, path: str) -> None:
        """Give each new level its parent's processors and nodes: an empty set admits no process (ENOSPC)."""
        level = mount
        for part in path.split("/"):
            parent, level = level, level / part
            for name in ("cpuset.cpus", "cpuset.mems"):
                if not cgroupfs.read(level / name):
                    cgroupfs.write(level / name, cgroupfs.read(parent / name))


class V1Slice:
    """One tenant's cgroups, the same relative path in every hierarchy."""

    def __init__(self, mounts: Mapping[str, Path], path: str, slice_: Slice | None) -> None:
        self._at = {name: mount / path for name, mount in mounts.items()}
        self._slice = slice_
        directories = tuple(sorted(set(self._at.values())))
        self.entry = Entry(
            procs_files=tuple(directory / "cgroup.procs" for directory in directories),
            processors=slice_.processors if slice_ else None,
        )
        self._directories = directories

    def make(self) -> None:
        """Make the directories and set every limit before anything can enter."""
        assert self._slice is not None
        for directory in self._directories:
            directory.mkdir(mode=0o755)
        cgroupfs.write(self._at["cpuset"] / "cpuset.cpus", format_list(self._slice.processors))
        cgroupfs.write(self._at["cpuset"] / "cpuset.mems", format_list(self._slice.nodes))
        memory = self._at["memory"]
        cgroupfs.write(memory / "memory.limit_in_bytes", str(self._slice.memory_bytes))
        if (memory / "memory.memsw.limit_in_bytes").exists():
            cgroupfs.write(memory / "memory.memsw.limit_in_bytes", str(self._slice.memory_bytes))

    def verify(self) -> ReadBack:
        assert self._slice is not None
        back = self._read_back()
        asked = (self._slice.processors, self._slice.nodes, self._slice.memory_bytes)
        got = (parse(back.processors or ""), parse(back.nodes or ""), back.memory_bytes)
        if got != asked:
            raise NotIsolatedError(f"tenant {self._slice.tenant} was planned {asked}, but its cgroup holds {got}")
        return back

    def _read_back(self) -> ReadBack:
        cpuset, memory = self._at["cpuset"], self._at["memory"]
        effective = cgroupfs.read_or_none(cpuset / "cpuset.effective_cpus")
        swap = cgroupfs.read_or_none(memory / "memory.memsw.limit_in_bytes")
        return ReadBack(
            processors=effective if effective is not None else cgroupfs.read(cpuset / "cpuset.cpus"),
            nodes=cgroupfs.read(cpuset / "cpuset.mems"),
            memory_bytes=int(cgroupfs.read(memory / "memory.limit_in_bytes")),
            memory_and_swap_bytes=int(swap) if swap is not None else None,
            pids_max=cgroupfs.read_or_none(self._at["pids"] / "pids.max") if "pids" in self._at else None,
        )

    def counters(self) -> Counters:
        return Counters(
            processor_ns=self._number("cpuacct", "cpuacct.usage"),
            memory_peak_bytes=self._number("memory", "memory.max_usage_in_bytes"),
            pids=self._number("pids", "pids.current"),
            oom_kills=cgroupfs.field(self._at["memory"] / "memory.oom_control", "oom_kill"),
        )

    def kill(self) -> None:
        deadline = time.monotonic() + KILL_WAIT_S
        self._freeze("FROZEN")
        try:
            self._kill_all()
        finally:
            self._freeze("THAWED")
        while left := self._pids():
            # What was not in the freezer's hierarchy, or forked without one, is met again here.
            self._kill_all()
            if time.monotonic() > deadline:
                raise NotIsolatedError(f"processes {sorted(left)} in {self._at['memory']} cannot be killed")
            time.sleep(0.002)

    def remove(self) -> None:
        for directory in self._directories:
            try:
                cgroupfs.remove(directory)
            except OSError as error:
                raise NotIsolatedError(f"{directory} cannot be removed: {error}") from error

    def _pids(self) -> set[int]:
        return {pid for directory in self._directories for pid in cgroupfs.pids(directory)}

    def _kill_all(self) -> None:
        for pid in self._pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _freeze(self, state: str) -> None:
        """Freezing keeps a fork bomb from outrunning the kill; a kernel without a freezer does without."""
        if "freezer" in self._at:
            with contextlib.suppress(OSError):
                cgroupfs.write(self._at["freezer"] / "freezer.state", state)

    def _number(self, controller: str, file: str) -> int | None:
        if controller not in self._at:
            return None
        text = cgroupfs.read_or_none(self._at[controller] / file)
        return int(text) if text is not None else None
