"""Backend `v2`: one directory a slice, below our own delegated cgroup.

A run lives in `cotenant.<login>/<pid>-<start>-<namespace>` below the cgroup in which we were started, a slice in
`t<i>` below that.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence, Set
from pathlib import Path

from cotenant.isolation import cgroupfs, scope
from cotenant.isolation.backend import SETUP_SCRIPT, Location, NotIsolatedError, ReadBack, Refusal, remedy_inside
from cotenant.isolation.group import V2Group
from cotenant.isolation.runs import OURS, checked_base, default_base
from cotenant.isolation.slice import Slice
from cotenant.isolation.slices import CgroupBackend, CgroupSlice, Throttled, pids_share, throttled_time
from cotenant.isolation.stopped import bind_stopped
from cotenant.isolation.v2tree import (
    ESSENTIAL,
    NEEDED,
    Tree,
    controllers,
    homes,
    is_declared_delegated,
    is_own,
    systemd_runs,
)
from cotenant.machine.limits import V2 as V2_HIERARCHY
from cotenant.machine.limits import Mounts
from cotenant.procfs import described, format_list

SETUP = f"Run as root, or {SETUP_SCRIPT} makes a cgroup for you: start the suite in it."
ALONE = f"Start the suite alone in a cgroup: {SETUP_SCRIPT} makes one."

COUNTED = {
    "memory_peak_bytes": ("memory", "memory.peak"),
    "memory_cache_bytes": ("memory", "memory.stat", "active_file", "inactive_file"),
    "pids": ("pids", "pids.current"),
    "pids_peak": ("pids", "pids.peak"),
    "pids_refused": ("pids", "pids.events", "max"),
    "oom_events": ("memory", "memory.events", "oom"),
    "oom_kills": ("memory", "memory.events", "oom_kill"),
    "oom_group_kills": ("memory", "memory.events", "oom_group_kill"),
}
STALLS = ("cpu", "memory", "io")


class V2Slice(CgroupSlice):
    """A slice in one v2 cgroup."""

    cpu_weight = "100"
    counted = COUNTED

    def __init__(
        self,
        directory: Path,
        slice_: Slice,
        controllers: Set[str],
        oom_group: bool,
    ) -> None:
        """Take the `controllers` that its parent hands down. `oom_group`: all its processes end if memory runs out."""
        # Without cpusets the tenant binds itself, and could undo it; `unenforced` says so.
        super().__init__(V2Group(directory), slice_, set_affinity="cpuset" not in controllers)
        self._directory = directory
        self._controllers = controllers
        self._oom_group = str(int(oom_group))

    def make(self) -> None:
        cgroupfs.make(self._directory)
        if "cpuset" in self._controllers:
            self._write("cpuset.cpus", format_list(self._slice.processors))
            self._write("cpuset.mems", format_list(self._slice.nodes))
        self._write("memory.max", str(self._slice.memory_bytes))
        for name, text in (("memory.swap.max", "0"), ("memory.oom.group", self._oom_group)):
            # Without swap accounting the backend reports swap; before Linux 4.19 only the runner ends all of a group.
            if (self._directory / name).exists():
                self._write(name, text)
        if "pids" in self._controllers:
            self._pids_max = pids_share(self._directory.parent, self._slice.slices)
            self._write("pids.max", str(self._pids_max))

    def processor_ns(self) -> int | None:
        used_us = self._count("cpu", "cpu.stat", "usage_usec")
        return None if used_us is None else used_us * 1000

    def memory_used_bytes(self) -> int | None:
        return self._count("memory", "memory.current")

    def _stalled_us(self) -> dict[str, int]:
        """Read lines like `some avg10=0.00 avg60=0.00 avg300=0.00 total=0` (Documentation/accounting/psi.rst)."""
        totals: dict[str, int] = {}
        for what in STALLS:
            try:
                lines = cgroupfs.read(self._directory / f"{what}.pressure").splitlines()
                totals |= {f"stalled_{what}_{line.split()[0]}_us": int(line.rpartition("total=")[2]) for line in lines}
            except (OSError, ValueError, IndexError):
                continue
        return totals

    def _throttled(self) -> Throttled:
        return throttled_time(cgroupfs.above(self._directory, "cpu.stat"), "throttled_usec", 1000)

    def _read_back(self) -> ReadBack:
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
            cpu_weight=cgroupfs.read_or_none(at / "cpu.weight"),
            oom_group=cgroupfs.read_or_none(at / "memory.oom.group"),
        )

    def _move(self, processors: Sequence[int]) -> str:
        if "cpuset" not in self._controllers:
            return format_list(bind_stopped(self._group.pids(), processors))
        self._write("cpuset.cpus", format_list(processors))
        return cgroupfs.read(self._directory / "cpuset.cpus.effective")

    def _place_of(self, controller: str) -> Path:
        return self._directory

    def _comparisons(self, back: ReadBack) -> Iterator[tuple[str, object, object, Path]]:
        yield from super()._comparisons(back)
        yield "memory.oom.group", back.oom_group, self._oom_group, self._directory

    def _write(self, name: str, text: str) -> None:
        cgroupfs.write(self._directory / name, text)


class V2(CgroupBackend):
    """Slices in the v2 hierarchy, below our own cgroup, or below `base`, a path below its mount point."""

    name = "v2"
    starts_again = False
    """True if the run has to start itself again, in a scope of systemd's, before it can make slices."""

    def __init__(self, mounts: Mounts, base: str | None = None) -> None:
        """Raise CotenantError for a base that is no path of a cgroup."""
        self._named = base is not None
        self._mounts = mounts
        self._tree = _tree(mounts, base if base is None else checked_base(base))
        self._controllers: frozenset[str] = frozenset()
        self.unenforced: tuple[str, ...] = ()
        if self._tree is not None:
            with contextlib.suppress(OSError):  # The probe reports it.
                self._hold(self._tree.top, controllers(self._tree.top / "cgroup.controllers"))

    def probe(self) -> Refusal | None:
        if self._tree is None:
            return Refusal("no cgroup v2 hierarchy shows our own cgroup")
        try:
            refusal = self._refusal(self._tree)
        except OSError as error:
            return Refusal(f"our own cgroup cannot be read: {error}", SETUP)
        if refusal is None or refusal.partial or self._named or scope.is_inside():
            return refusal
        return self._refusal_of_scope(self._tree, refusal) if scope.may_be_asked_for(self._mounts) else refusal

    def _refusal_of_scope(self, tree: Tree, here: Refusal) -> Refusal | None:
        """Return why not even a scope of systemd's would serve, given that the present cgroup does not."""
        if (refusal := scope.refusal(self._mounts)) is not None:
            return Refusal(f"{here.reason}, and {refusal.reason}", refusal.remedy or here.remedy)
        handed = scope.offered(self._mounts)
        if missing := [name for name in ESSENTIAL if name not in handed]:
            return Refusal(
                f"{here.reason}, and systemd delegates no controller {missing[0]} to us", scope.cpusets_remedy()
            )
        self.starts_again = True
        self._hold(tree.top, handed)
        if "cpuset" not in handed:
            return Refusal("systemd delegates memory, but no cpusets to us", scope.cpusets_remedy(), partial=True)
        return None

    def clear_run(self, run: str) -> None:
        if self._tree is not None:
            self._tree.clear_run(run)

    def sweep(self) -> list[str]:
        """Kill and remove the runs of this owner whose runner is dead; return their names.

        A scope of systemd's has its own home, so all homes are searched. Raises NotIsolatedError.
        """
        swept = []
        for tree in self._trees():
            for run in tree.runs():
                # Any user may name a cgroup like ours, and keep processes in it that cannot be moved.
                if is_own(tree.run(str(run))) and tree.is_dead(run):
                    tree.clear_run(str(run))
                    swept.append(str(run))
        return swept

    def elsewhere(self) -> tuple[Path, ...]:
        runs = [(tree, run) for tree in self._trees() for run in tree.runs() if run.is_elsewhere]
        return tuple(tree.run(str(run)) for tree, run in runs if not tree.is_dead(run))

    def location(self) -> Location:
        assert self._tree is not None
        return {"v2": {"top": str(self._tree.top), "home": str(self._tree.home)}}

    def _make_run(self, run: str) -> None:
        assert self._tree is not None
        handed = self._tree.raise_run(run)
        if lost := self._controllers & set(NEEDED) - handed:
            raise NotIsolatedError(f"{self._tree.top} no longer hands down the controller {min(lost)}")
        self._hold(self._tree.run(run), handed)

    def _slice(self, path: str, slice_: Slice) -> V2Slice:
        assert self._tree is not None
        return V2Slice(self._tree.home / path, slice_, self._controllers, self.oom_group)

    def _trees(self) -> Iterator[Tree]:
        assert self._tree is not None
        yield self._tree
        if not self._named and self._mounts.v2 is not None:
            for home in homes(self._mounts.v2, self._tree.home.name):
                if home != self._tree.home and os.access(home, os.W_OK):
                    yield Tree(home.parent, home)

    def _hold(self, level: Path, handed: frozenset[str]) -> None:
        """Note the resources that slices get. The root of the hierarchy has no files that could tell about swap."""
        self._controllers = handed
        no_swap = (level / "memory.max").exists() and not (level / "memory.swap.max").exists()
        lacking = {"processors": "cpuset", "nodes": "cpuset", "memory": "memory", "pids": "pids"}
        unenforced = [what for what, controller in lacking.items() if controller not in handed]
        self.unenforced = (*unenforced, *(["swap"] if no_swap else []))

    def _refusal(self, tree: Tree) -> Refusal | None:
        if not tree.top.is_dir():
            return Refusal(f"there is no cgroup {tree.top}", SETUP)
        offered = controllers(tree.top / "cgroup.controllers")
        if missing := [name for name in ESSENTIAL if name not in offered]:
            remedy = "" if missing[0] in self._mounts.v1 else remedy_inside("")
            return Refusal(f"{tree.top} has no controller {missing[0]}", remedy)
        if not self._is_delegated(tree.top):
            return Refusal(f"the cgroup {tree.top} is not delegated to us", remedy_inside(SETUP))
        for place in (tree.top, tree.top / "cgroup.procs", tree.top / "cgroup.subtree_control"):
            if not os.access(place, os.W_OK):
                return Refusal(f"{place} is not writable", remedy_inside(SETUP))
        if strangers := tree.strangers():
            reason = f"others live in {tree.top}, which could not be divided then: {described(strangers[0])}"
            return Refusal(reason, remedy_inside(ALONE))
        if "cpuset" not in offered:
            remedy = scope.cpusets_remedy() if scope.may_be_asked_for(self._mounts) else remedy_inside(SETUP)
            return Refusal(f"{tree.top} has no controller cpuset", remedy, partial=True)
        return None

    def _is_delegated(self, top: Path) -> bool:
        """Return whether a cgroup is ours: one given by name is the user's choice, a scope that we asked for is ours.

        Without systemd, root and the cgroup's owner decide: what root gave to a user is not taken back.
        """
        if self._named or is_declared_delegated(top) or scope.is_inside():
            return True
        return scope.has_delegated(top) if systemd_runs() else os.geteuid() == 0 or is_own(top)


def _tree(mounts: Mounts, base: str | None) -> Tree | None:
    level = mounts.own.get(V2_HIERARCHY)
    if base is None:
        return None if level is None else Tree(level, level / default_base())
    if mounts.v2 is None:
        return None
    home = mounts.v2 / base
    # An existing base may have been made for us, and the cgroups above it are not ours to divide.
    is_made_by_us = home.name.startswith(OURS) and not home.is_dir()
    return Tree(home.parent if is_made_by_us else home, home)
