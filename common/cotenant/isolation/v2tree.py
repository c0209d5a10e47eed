"""The place of runs in the v2 hierarchy: the levels that hand controllers down, and the leaf for the runner itself.

A v2 cgroup that hands controllers to its children may hold no process itself (EBUSY). So a runner that lives in the
cgroup to be divided first moves into a leaf of its run, with its own children and no other process, and back at the
end. The order is: move, enable from the top down; disable from the bottom up, move back.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cotenant.isolation import cgroupfs
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.group import V2Group, kill_all
from cotenant.isolation.processes import kill_marked
from cotenant.isolation.runs import OURS, RunName, runs_below
from cotenant.procfs import described, parent_of
from cotenant.text import listed

ESSENTIAL = ("memory",)
"""Without these controllers there is no slice."""
NEEDED = (*ESSENTIAL, "cpuset")
"""Without a cpuset a slice is partial: if offered, it is required."""
WANTED = ("pids", "cpu", "io")
LEAF = "runner"
MOVES = 100
LEAVE_WAIT_S = 5.0
"""A killed process is listed until its memory is given back, and cannot be moved meanwhile."""
LEAVE_POLL_S = 0.0005
ARRIVAL_WAIT_S = 0.2


ATTRIBUTES = ("trusted.delegate", "user.delegate")
"""Marks of systemd on a delegated unit's cgroup: the first by the host's manager, the second by a user's, too."""
SYSTEMD = Path("/run/systemd/system")


@dataclass(frozen=True, slots=True)
class Tree:
    """The cgroups above runs: `home` is their parent; `top`, the home or its parent, is the highest that is divided."""

    top: Path
    home: Path

    @property
    def is_ours(self) -> bool:
        """Return whether the home is made and removed with its runs."""
        return self.home.name.startswith(OURS)

    def run(self, name: str) -> Path:
        return self.home / name

    def runs(self) -> list[RunName]:
        """Return the runs that have a cgroup here."""
        return runs_below([self.home])

    def is_dead(self, run: RunName) -> bool | None:
        """Return whether a run's runner is dead; None if nothing shows it.

        If the runner cannot be seen from here, its leaf shows it: it is empty once runner and reaper have ended.
        """
        alive, leaf = run.alive, self.run(str(run)) / LEAF
        if alive is None and leaf.is_dir():
            with contextlib.suppress(NotIsolatedError):
                if V2Group(leaf).populated():
                    return False
                # A runner that has just made it is about to move in.
                time.sleep(ARRIVAL_WAIT_S)
                return not V2Group(leaf).populated()
        return None if alive is None else not alive

    def levels(self, name: str) -> list[Path]:
        """Return the cgroups that hand controllers down to slices, the top first."""
        return list(dict.fromkeys([self.top, self.home, self.run(name)]))

    def strangers(self) -> list[int]:
        """Return the processes in the way that are not ours to move. Raises OSError."""
        levels = dict.fromkeys([self.top, self.home])
        return [pid for level in levels if not is_root(level) for pid in divided(level, ours=False)]

    def raise_run(self, name: str) -> frozenset[str]:
        """Make a run's cgroup with all above it; return the controllers that its slices get. Raises OSError."""
        if self.is_ours:
            with contextlib.suppress(FileExistsError):
                cgroupfs.make(self.home)
        cgroupfs.make(self.run(name))
        levels = self.levels(name)
        for level in levels:
            if not is_root(level):
                self._clear_level(level, self.run(name) / LEAF)
        for level in levels:
            _enable(level)
        return controllers(levels[-1] / "cgroup.subtree_control")

    def clear_run(self, name: str) -> None:
        """Kill everything in a run but this process, move it back, remove the run. Raises NotIsolatedError."""
        run = self.run(name)
        try:
            kill_all(self._slices(name))
            # Before we leave: a slice divided by its tenant keeps the run from taking its controllers back.
            for slice_ in self._slices(name):
                with contextlib.suppress(NotIsolatedError):  # Tried again below, and reported then.
                    slice_.remove()
            if (run / LEAF).is_dir():
                self._leave(name)
        except OSError as error:
            raise NotIsolatedError(f"what is left in {run} cannot be cleared: {error}") from error
        V2Group(run).remove()
        if self.is_ours:
            # Not empty, or not ours to remove: another run lives there, or it was made for us.
            with contextlib.suppress(OSError):
                self.home.rmdir()

    def thaw_run(self, name: str) -> None:
        """Let all processes in a run go on."""
        for slice_ in self._slices(name):
            slice_.thaw_all()

    def _slices(self, name: str) -> list[V2Group]:
        run = self.run(name)
        below = [path for path in run.iterdir() if path.is_dir()] if run.is_dir() else []
        return [V2Group(path) for path in below if path.name != LEAF]

    def _clear_level(self, level: Path, leaf: Path) -> None:
        """Move our processes from a level into the leaf, until no new ones are forked meanwhile."""
        for _ in range(MOVES):
            if strangers := divided(level, ours=False):
                names = listed(map(described, strangers), 3)
                raise NotIsolatedError(f"{names} live in {level}, and are not ours to move")
            pids = divided(level, ours=True)
            if not pids:
                return
            with contextlib.suppress(FileExistsError):
                cgroupfs.make(leaf)
            _move(pids, leaf)
        raise NotIsolatedError(f"processes keep appearing in {level}")

    def _leave(self, name: str) -> None:
        """Empty a run's leaf: processes with the run's marker end; the others came from the top, and go back.

        The others are this process, and in a dead run's leaf also processes that its shell had started before it.
        """
        leaf = self.run(name) / LEAF
        if divided(leaf, ours=False):
            kill_marked(name)
        # If none of our processes is inside, another run may need the controllers that the top hands down.
        with contextlib.nullcontext() if divided(leaf, ours=True) else contextlib.suppress(OSError):
            for level in reversed(self.levels(name)):
                _disable(level)
        deadline = time.monotonic() + LEAVE_WAIT_S
        # 0 stands for a process of another PID namespace, which the kernel cannot be told to move.
        while pids := [pid for pid in cgroupfs.pids(leaf) if pid]:
            if time.monotonic() > deadline:
                raise NotIsolatedError(f"{listed(map(described, pids), 3)} do not leave {leaf}")
            _move(pids, self.top)
            time.sleep(LEAVE_POLL_S)


def systemd_runs() -> bool:
    """Return whether systemd is this host's init: then it owns every cgroup but the delegated ones (sd_booted(3))."""
    return SYSTEMD.is_dir()


def is_declared_delegated(directory: Path) -> bool:
    """Return whether a manager says that it has delegated this cgroup."""
    for name in ATTRIBUTES:
        with contextlib.suppress(OSError):
            if os.getxattr(directory, name) == b"1":
                return True
    return False


def is_own(directory: Path) -> bool:
    """Return whether this user owns a cgroup; false if it is gone."""
    try:
        return directory.stat().st_uid == os.geteuid()
    except OSError:
        return False


def is_root(directory: Path) -> bool:
    """Return whether this is the root of the whole hierarchy, which may have processes and children at once."""
    return not (directory / "cgroup.events").exists()


def divided(directory: Path, ours: bool) -> list[int]:
    """Return the processes directly in a cgroup that are ours, or the others. Raises OSError.

    Ours are this process and its descendants; no other is ever moved.
    """
    return [pid for pid in cgroupfs.pids(directory) if is_ours(pid) == ours]


def is_ours(pid: int) -> bool:
    """Return whether a process is this one or descends from it; 0 stands for one of another PID namespace."""
    ourselves = os.getpid()
    while pid > 1 and pid != ourselves:
        pid = parent_of(pid) or 0
    return pid == ourselves


def controllers(file: Path) -> frozenset[str]:
    """Return the names in a list of controllers; none if there is no such cgroup. Raises OSError."""
    return frozenset((cgroupfs.read_or_none(file) or "").split())


def homes(top: Path, name: str) -> Iterator[Path]:
    """Yield every cgroup of this name at or below `top`."""
    for directory, below, _ in os.walk(top):
        if name in below:
            below.remove(name)
            yield Path(directory, name)


def _enable(level: Path) -> None:
    """Hand the controllers down one by one, so that a refusal names its own; wanted ones are optional."""
    offered = controllers(level / "cgroup.controllers")
    handed = controllers(level / "cgroup.subtree_control")
    for name in (*NEEDED, *WANTED):
        if name in handed or (name not in ESSENTIAL and name not in offered):
            continue
        try:
            cgroupfs.write(level / "cgroup.subtree_control", f"+{name}")
        except OSError:
            if name in NEEDED:
                raise


def _disable(level: Path) -> None:
    for name in sorted(controllers(level / "cgroup.subtree_control")):
        cgroupfs.write(level / "cgroup.subtree_control", f"-{name}")


def _move(pids: list[int], target: Path) -> None:
    for pid in pids:
        try:
            cgroupfs.write(target / "cgroup.procs", str(pid))
        except OSError as error:
            if error.errno != errno.ESRCH:  # It has ended by itself.
                raise
