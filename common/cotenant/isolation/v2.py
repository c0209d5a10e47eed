"""Backend `v2`: one directory a slice, below our own delegated cgroup. `systemd` builds on it.

A run lives in `cotenant.<login>/<pid>-<start>-<namespace>` below the cgroup that we were started in, a slice in `t<i>`
below that.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from cotenant.isolation.backend import OURS, Location, NotIsolatedError, Refusal, RunName, owner
from cotenant.isolation.delegation import described, is_marked, systemd_runs
from cotenant.isolation.enabling import DELEGATION
from cotenant.isolation.names import checked_base
from cotenant.isolation.plan import Slice
from cotenant.isolation.v2slice import V2Slice
from cotenant.isolation.v2tree import ESSENTIAL, NEEDED, Tree, controllers, homes
from cotenant.machine.limits import Mounts
from cotenant.machine.virtual import batch_system

SETUP = "Run as root, or let ./cgroup_setup.sh make a cgroup for you, and start the suite in it."
BY_SYSTEMD = "--isolation systemd asks it for one that is."
ALONE = "Start the suite alone in a cgroup: ./cgroup_setup.sh makes one."
CPUSETS = (
    f"As root: {DELEGATION}, written below a line [Service]; then log out everywhere and in again. "
    "(./cgroup_setup.sh --install-drop-in does it.)"
)


class V2:
    """Slices in the v2 hierarchy, below our own cgroup, or below `base`, a path below its mount point."""

    name = "v2"

    def __init__(self, mounts: Mounts, base: str | None = None, on_oom: str = "group") -> None:
        """Raises CotenantError for a base that is no path of a cgroup."""
        self._named = base is not None
        self._mount = mounts.v2
        self._tree = _tree(mounts, base if base is None else checked_base(base))
        self._oom_group = on_oom == "group"
        self._run: RunName | None = None
        self._controllers: frozenset[str] = frozenset()
        self.unenforced: tuple[str, ...] = ()
        if self._tree is not None:
            with contextlib.suppress(OSError):  # The probe says so.
                self._hold(self._tree.top, controllers(self._tree.top / "cgroup.controllers"))

    def probe(self) -> Refusal | None:
        if self._tree is None:
            return Refusal("no cgroup v2 hierarchy shows our own cgroup")
        try:
            return self._refusal(self._tree)
        except OSError as error:
            return Refusal(f"our own cgroup cannot be read: {error}", SETUP)

    def open(self, run: RunName) -> None:
        """Make the run's cgroup and sweep dead runs. Raises NotIsolatedError."""
        assert self._tree is not None
        self.sweep()
        self._run = run
        try:
            handed = self._tree.raise_run(str(run))
            if lost := self._controllers & set(NEEDED) - handed:
                raise NotIsolatedError(f"{self._tree.top} no longer hands down the controller {min(lost)}")
            self._hold(self._tree.run(str(run)), handed)
        except OSError as error:
            with contextlib.suppress(NotIsolatedError):
                self.close()
            raise NotIsolatedError(f"the parent of this run's slices cannot be made: {error}") from error

    def create(self, slice_: Slice) -> V2Slice:
        assert self._run is not None
        assert self._tree is not None
        directory = self._tree.run(str(self._run)) / f"t{slice_.tenant}"
        live = V2Slice(directory, slice_, self._controllers, self._oom_group)
        try:
            live.make()
        except (OSError, ValueError) as error:
            # What cannot be removed now is close's business; the reason is what counts.
            if not isinstance(error, FileExistsError):
                with contextlib.suppress(NotIsolatedError):
                    live.remove()
            raise NotIsolatedError(f"the slice of tenant {slice_.tenant} cannot be made: {error}") from error
        return live

    def close(self) -> None:
        if self._run is not None and self._tree is not None:
            self._tree.clear_run(str(self._run))
            self._run = None

    def sweep(self) -> list[str]:
        """Kill and remove the runs of this owner whose runner is dead; return their names.

        A scope of systemd's has its own home, so all are looked for. Raises NotIsolatedError.
        """
        swept = []
        for tree in self._trees():
            for run in tree.runs():
                if tree.is_dead(run):
                    tree.clear_run(str(run))
                    swept.append(str(run))
        return swept

    def elsewhere(self) -> tuple[Path, ...]:
        runs = [(tree, run) for tree in self._trees() for run in tree.runs() if run.is_elsewhere]
        return tuple(tree.run(str(run)) for tree, run in runs if not tree.is_dead(run))

    def location(self) -> Location:
        assert self._tree is not None
        return {"v2": {"top": str(self._tree.top), "home": str(self._tree.home)}}

    def _trees(self) -> Iterator[Tree]:
        assert self._tree is not None
        yield self._tree
        if not self._named and self._mount is not None:
            for home in homes(self._mount, self._tree.home.name):
                if home != self._tree.home and os.access(home, os.W_OK):
                    yield Tree(home.parent, home)

    def _hold(self, level: Path, handed: frozenset[str]) -> None:
        """Know what slices get, and say what they do not. The root of all has no files that could say it of swap."""
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
            return Refusal(f"{tree.top} has no controller {missing[0]}", _remedy(BY_SYSTEMD, ""))
        if not self._is_delegated(tree.top):
            return Refusal(f"the cgroup {tree.top} is not delegated to us", _remedy(BY_SYSTEMD, SETUP))
        for place in (tree.top, tree.top / "cgroup.procs", tree.top / "cgroup.subtree_control"):
            if not os.access(place, os.W_OK):
                return Refusal(f"{place} is not writable", _remedy(SETUP, SETUP))
        if strangers := tree.strangers():
            others = described(strangers[0])
            return Refusal(
                f"others live in {tree.top}, which could not be divided then: {others}", _remedy(BY_SYSTEMD, ALONE)
            )
        if "cpuset" not in offered:
            return Refusal(f"{tree.top} has no controller cpuset", _remedy(CPUSETS, SETUP), partial=True)
        return None

    def _is_delegated(self, top: Path) -> bool:
        """A base by name is its namer's business; without systemd, root and whoever ./cgroup_setup.sh served decide."""
        if self._named or is_marked(top):
            return True
        return not systemd_runs() and (os.geteuid() == 0 or top.name.startswith(OURS))


def _tree(mounts: Mounts, base: str | None) -> Tree | None:
    own = mounts.own_path()
    if base is None:
        return None if own is None else Tree(own, own / f"{OURS}.{owner()}")
    if mounts.v2 is None:
        return None
    home = mounts.v2 / base
    # One that is there may have been made for us, and what is above it is not ours to divide.
    is_made_by_us = home.name.startswith(OURS) and not home.is_dir()
    return Tree(home.parent if is_made_by_us else home, home)


def _remedy(by_systemd: str, otherwise: str) -> str:
    if batch := batch_system():
        return (
            f"{batch} keeps the cgroups of its jobs: as root, outside of a job, there are slices (docs/containers.md)."
        )
    return by_systemd if systemd_runs() else otherwise
