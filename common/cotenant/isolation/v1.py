"""Backend `v1`: one directory per controller, direct writes. Small on purpose, as most hosts have v2.

A run lives in `/cotenant.<login>/<pid>-<start>-<namespace>` of each hierarchy, a tenant's slice in `t<i>` below
that. A v2 hierarchy beside them is left alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from cotenant.isolation import cgroupfs
from cotenant.isolation.backend import SETUP_SCRIPT, Location, ReadBack, Refusal, remedy_inside
from cotenant.isolation.group import V1Group
from cotenant.isolation.runs import OURS, checked_base, default_base, runs_below
from cotenant.isolation.slice import Slice
from cotenant.isolation.slices import CgroupBackend, CgroupSlice, Throttled, pids_share, throttled_time
from cotenant.procfs import format_list

NEEDED = ("cpuset", "memory")
WANTED = ("cpu", "cpuacct", "freezer", "pids")
CPU_SHARES = 1024
"""The weight of a new cgroup, and of a process outside of any, for sharing processor time."""
COUNTED = {
    "memory_peak_bytes": ("memory", "memory.max_usage_in_bytes"),
    "memory_cache_bytes": ("memory", "memory.stat", "total_active_file", "total_inactive_file"),
    "pids": ("pids", "pids.current"),
    "pids_peak": ("pids", "pids.peak"),
    "pids_refused": ("pids", "pids.events", "max"),
    "oom_kills": ("memory", "memory.oom_control", "oom_kill"),
}
SETUP = f"Run as root, or {SETUP_SCRIPT} makes a base for you."


class V1Slice(CgroupSlice):
    """A slice in v1 cgroups: a directory in each hierarchy."""

    cpu_weight = str(CPU_SHARES)
    counted = COUNTED

    def __init__(self, group: V1Group, slice_: Slice, quotas: Sequence[Path] = ()) -> None:
        """Take `quotas`, cgroups of the controller `cpu` whose quotas apply to a slice that has no cgroup of it."""
        super().__init__(group, slice_)
        self._at = group.at
        self._quotas = quotas

    def make(self) -> None:
        self._group.make()
        at = self._at
        cgroupfs.write(at["cpuset"] / "cpuset.cpus", format_list(self._slice.processors))
        cgroupfs.write(at["cpuset"] / "cpuset.mems", format_list(self._slice.nodes))
        cgroupfs.write(at["memory"] / "memory.limit_in_bytes", str(self._slice.memory_bytes))
        # Memory first: the limit on memory and swap together may not be below it.
        if self._swap() is not None:
            cgroupfs.write(at["memory"] / "memory.memsw.limit_in_bytes", str(self._slice.memory_bytes))
        if "pids" in at:
            self._pids_max = pids_share(at["pids"].parent, self._slice.slices)
            cgroupfs.write(at["pids"] / "pids.max", str(self._pids_max))

        if "cpu" in at:
            self._weigh(at["cpu"].parent)

    def _weigh(self, run: Path) -> None:
        """Make a run weigh as much as all its tenants, as time is shared level by level, first with the host's cgroups.

        A base that was made for us keeps the weight that its owner gave it.
        """
        shares = CPU_SHARES * sum(level.is_dir() for level in run.iterdir())
        for level in (run, *([run.parent] if run.parent.name.startswith(OURS) else [])):
            with contextlib.suppress(PermissionError):
                cgroupfs.write(level / "cpu.shares", str(shares))

    def processor_ns(self) -> int | None:
        return self._count("cpuacct", "cpuacct.usage")

    def memory_used_bytes(self) -> int | None:
        return self._count("memory", "memory.usage_in_bytes")

    def _read_back(self) -> ReadBack:
        at = self._at
        limit = int(cgroupfs.read(at["memory"] / "memory.limit_in_bytes"))
        above = cgroupfs.field(at["memory"] / "memory.stat", "hierarchical_memory_limit")
        return ReadBack(
            processors=self._effective("cpus"),
            nodes=self._effective("mems"),
            memory_bytes=limit if above is None else min(limit, above),
            memory_and_swap_bytes=self._swap(),
            pids_max=cgroupfs.read(at["pids"] / "pids.max") if "pids" in at else None,
            cpu_weight=cgroupfs.read_or_none(at["cpu"] / "cpu.shares") if "cpu" in at else None,
        )

    def _move(self, processors: Sequence[int]) -> str:
        cgroupfs.write(self._at["cpuset"] / "cpuset.cpus", format_list(processors))
        return self._effective("cpus")

    def _effective(self, what: str) -> str:
        cpuset = self._at["cpuset"]
        effective = cgroupfs.read_or_none(cpuset / f"cpuset.effective_{what}")
        return cgroupfs.read(cpuset / f"cpuset.{what}") if effective is None else effective

    def _swap(self) -> int | None:
        text = cgroupfs.read_or_none(self._at["memory"] / "memory.memsw.limit_in_bytes")
        return int(text) if text is not None else None

    def _place_of(self, controller: str) -> Path:
        return self._at.get(controller, self._at["memory"])

    def _throttled(self) -> Throttled:
        """Read the `cpu.stat` of every quota on the slice: `cpu` and `cpuacct` may be mounted together."""
        place = self._at.get("cpu", self._place_of("cpuacct"))
        stats = [*cgroupfs.above(place, "cpu.stat")] or [directory / "cpu.stat" for directory in self._quotas]
        return throttled_time(stats, "throttled_time", 1)


class V1(CgroupBackend):
    """Slices in the v1 hierarchies; `mounts` has for each controller the parent of our base, often the mount point."""

    name = "v1"

    def __init__(self, mounts: Mapping[str, Path], base: str | None = None, quotas: Sequence[Path] = ()) -> None:
        """`base` is the parent of our runs, a path below each of `mounts`.

        `quotas` are the cgroups of the controller `cpu` whose quotas hold tenants back. Raises CotenantError for a base
        that is no path of a cgroup.
        """
        self._base = checked_base(default_base() if base is None else base)
        self._quotas = tuple(quotas)
        self._mounts = {
            name: at for name, at in mounts.items() if name in NEEDED or (name in WANTED and self._refusal(at) is None)
        }
        memory = self._mounts.get("memory")
        holds_swap = memory is not None and (memory / "memory.memsw.limit_in_bytes").exists()
        held = {"swap": holds_swap, "pids": "pids" in self._mounts}
        self.unenforced = tuple(what for what, holds in held.items() if not holds)

    def probe(self) -> Refusal | None:
        for name in NEEDED:
            if name not in self._mounts:
                return Refusal(f"the v1 controller {name} is not mounted")
            if reason := self._refusal(self._mounts[name]):
                return Refusal(reason, remedy_inside(SETUP))
        return None

    def location(self) -> Location:
        return {"v1": {"mounts": {name: str(path) for name, path in self._mounts.items()}, "base": self._base}}

    def sweep(self) -> list[str]:
        """Kill and remove the runs below our base whose runner is dead; return their names. Raises NotIsolatedError."""
        dead = [str(run) for run in runs_below(self._bases()) if run.alive is False]
        for name in dead:
            self.clear_run(name)
        return dead

    def elsewhere(self) -> tuple[Path, ...]:
        runs = [run for run in runs_below(self._bases()) if run.is_elsewhere and run.alive is not False]
        return tuple(path for run in runs for path in self._group(str(run)).directories if path.is_dir())

    def clear_run(self, run: str) -> None:
        """Kill everything in a run, remove its directories, and the base if that was its last run.

        Raises NotIsolatedError.
        """
        group = self._group(run)
        group.kill()
        group.remove()
        if self._is_ours():
            for base in self._bases():
                # Not empty, or not ours to remove: another run lives there, or it was delegated to us.
                with contextlib.suppress(OSError):
                    base.rmdir()

    def thaw_run(self, run: str) -> None:
        """Let all processes in a run go on."""
        self._group(run).thaw_all()

    def _make_run(self, run: str) -> None:
        group = self._group(run)
        for directory in group.directories:
            try:
                self._make_directory(directory)
            except FileNotFoundError:  # The base went with its last run meanwhile.
                self._make_directory(directory)
        _inherit_cpuset(group.at["cpuset"].parent)
        _inherit_cpuset(group.at["cpuset"])

    def _slice(self, path: str, slice_: Slice) -> V1Slice:
        return V1Slice(self._group(path), slice_, self._quotas)

    def _make_directory(self, directory: Path) -> None:
        """Make a run's directory, and the base if that is ours to make."""
        if self._is_ours():
            with contextlib.suppress(FileExistsError):
                cgroupfs.make(directory.parent)
        cgroupfs.make(directory)

    def _group(self, path: str) -> V1Group:
        return V1Group(self._mounts, f"{self._base}/{path}")

    def _bases(self) -> tuple[Path, ...]:
        return V1Group(self._mounts, self._base).directories

    def _is_ours(self) -> bool:
        return self._base.rpartition("/")[2].startswith(OURS)

    def _refusal(self, mount: Path) -> str | None:
        """Return why a run cannot be made in the hierarchy mounted there, None if it can."""
        base = mount / self._base
        if not base.is_dir():
            if not self._is_ours() or not base.parent.is_dir():
                return f"there is no cgroup {base}"
            base = base.parent
        return None if os.access(base, os.W_OK | os.X_OK) else f"{base} is not writable"


def _inherit_cpuset(level: Path) -> None:
    """Give a new level its parent's processors and nodes: an empty set admits no process (ENOSPC)."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not cgroupfs.read(level / name):
            cgroupfs.write(level / name, cgroupfs.read(level.parent / name))
