"""A slice's cgroups with all below them: their processes, their end, their removal. On v1 there are several."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from cotenant.isolation import cgroupfs
from cotenant.isolation.backend import NotIsolatedError, UnkillableError
from cotenant.isolation.processes import KILL_WAIT_S, send
from cotenant.procfs import numbered, start_ticks
from cotenant.text import listed

FREEZE_WAIT_S = 0.1
AT_ONCE_S = 0.1
"""Seconds before the next way to kill is tried: processes may have joined meanwhile."""
POLL_S = 0.002
LOOKS = 3


class Group:
    """The cgroups at `directories`, which count as empty if they are gone. Messages name `place`.

    `freezer` is the kernel's file to freeze the processes inside.
    """

    _HELD: str
    _LOOSE: str

    def __init__(self, directories: Sequence[Path], place: Path, freezer: Path | None) -> None:
        self.directories = tuple(directories)
        self._place, self._freezer = place, freezer

    @property
    def _levels(self) -> list[Path]:
        """Every cgroup with all that a tenant made below it, the deepest first."""
        return [level for top in self.directories for level in cgroupfs.subtree(top)]

    def make(self) -> None:
        """Make every directory. Raises OSError."""
        for directory in self.directories:
            cgroupfs.make(directory)

    def pids(self) -> set[int]:
        """Return every process inside, also in cgroups that a tenant made below its own. Raises NotIsolatedError.

        0 stands for a process of another PID namespace.
        """
        try:
            return {pid for level in self._levels for pid in cgroupfs.pids(level)}
        except OSError as error:
            raise NotIsolatedError(f"the processes of a slice cannot be listed: {error}") from error

    def outside(self, pids: Iterable[int]) -> set[int]:
        """Return the living processes of `pids`, or in any of the cgroups, that have a thread outside of one of them.

        Raises OSError.
        """
        left = {*pids, *self.pids()} - {0}
        for _ in range(LOOKS):
            # Threads that end meanwhile are gone at the next look.
            threads_of = {pid: set(numbered(Path(f"/proc/{pid}/task"))) for pid in left if start_ticks(pid) is not None}
            inside = [
                {thread for level in cgroupfs.subtree(top) for thread in cgroupfs.threads(level)}
                for top in self.directories
            ]
            left = {pid for pid, threads in threads_of.items() if not all(threads <= there for there in inside)}
            if not left:
                break
        return left

    def populated(self) -> bool:
        """Return whether there is a process inside. Raises NotIsolatedError."""
        return bool(self.pids())

    def kill(self) -> None:
        """Kill every process inside and wait until none is left. Raises NotIsolatedError if some survive."""
        deadline = time.monotonic() + KILL_WAIT_S
        while self.populated():
            if not (self.kill_at_once() and self._ended()):
                self._kill_frozen()
                self._ended()
            if time.monotonic() > deadline and (pids := self.pids()):
                raise UnkillableError(f"processes {listed(sorted(pids))} in {self._place} cannot be killed")

    def kill_at_once(self) -> bool:
        """Have the kernel kill all, including processes being forked; return whether it can."""
        return False

    def remove(self) -> None:
        """Remove every directory and all below. Raises NotIsolatedError, after having tried all."""
        failures = []
        for level in self._levels:
            try:
                cgroupfs.remove(level)
            except OSError as error:
                failures.append(f"{level} cannot be removed: {os.strerror(error.errno or 0)}")
        if failures:
            raise NotIsolatedError("; ".join(failures))

    def _ended(self) -> bool:
        """Wait for killed processes to end, AT_ONCE_S at most; return whether they did."""
        deadline = time.monotonic() + AT_ONCE_S
        while self.populated():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def _kill_frozen(self) -> None:
        with self._frozen():
            for pid in self.pids() - {0}:
                # Another user's process stays, and is named when the time is up.
                send(pid, signal.SIGKILL)

    @property
    def can_freeze(self) -> bool:
        """Return whether the kernel can freeze the processes inside."""
        return self._freezer is not None and self._freezer.exists()

    def freeze(self) -> None:
        """Start to freeze the processes inside; `frozen` tells when it is done. Raises OSError."""
        self._set_freezer(self._HELD)

    def frozen(self) -> bool:
        """Return whether all processes inside are frozen. Raises OSError."""
        raise NotImplementedError

    def thaw(self) -> None:
        """Let the processes inside go on; does nothing if none is frozen. Raises OSError."""
        self._set_freezer(self._LOOSE)

    def _set_freezer(self, text: str) -> None:
        assert self._freezer is not None
        cgroupfs.write(self._freezer, text)

    @contextlib.contextmanager
    def _frozen(self) -> Iterator[None]:
        """Freeze the processes for a block, if possible: nothing forks, so a fork bomb cannot outrun its end.

        No pid passes to another process meanwhile. A process that cannot be thawed shows as one that cannot be killed.
        """
        if not self.can_freeze:
            yield
            return
        try:
            with contextlib.suppress(OSError):
                self.freeze()
                deadline = time.monotonic() + FREEZE_WAIT_S
                while not self.frozen() and time.monotonic() < deadline:
                    time.sleep(POLL_S / 2)
            yield
        finally:
            self.thaw_all()

    def thaw_all(self) -> None:
        """Thaw as many processes as possible, also in cgroups that a tenant made and froze."""
        if (file := self._freezer) is not None:
            for level in cgroupfs.subtree(file.parent):
                with contextlib.suppress(OSError):
                    cgroupfs.write(level / file.name, self._LOOSE)


class V1Group(Group):
    """The directories at one path of every hierarchy: `at` has them by controller; those mounted together share one."""

    _HELD, _LOOSE = "FROZEN", "THAWED"

    def __init__(self, mounts: Mapping[str, Path], path: str) -> None:
        self.at = {name: mount / path for name, mount in mounts.items()}
        freezer = self.at["freezer"] / "freezer.state" if "freezer" in self.at else None
        super().__init__(sorted(set(self.at.values())), self.at.get("memory", Path(path)), freezer)

    def frozen(self) -> bool:
        return cgroupfs.read(self.at["freezer"] / "freezer.state") == self._HELD


class V2Group(Group):
    """The cgroup at `directory`; Linux 5.2 can freeze it."""

    _HELD, _LOOSE = "1", "0"

    def __init__(self, directory: Path) -> None:
        super().__init__([directory], directory, directory / "cgroup.freeze")
        self.directory = directory

    def populated(self) -> bool:
        """Return whether a living process is inside: zombies do not count. Raises NotIsolatedError."""
        try:
            return bool(cgroupfs.field(self.directory / "cgroup.events", "populated"))
        except (OSError, ValueError) as error:
            raise NotIsolatedError(f"whether {self.directory} is empty cannot be read: {error}") from error

    def kill_at_once(self) -> bool:
        """Write `cgroup.kill`, which Linux has since 5.14."""
        try:
            cgroupfs.write(self.directory / "cgroup.kill", "1")
        except OSError:
            return False
        return True

    def frozen(self) -> bool:
        return cgroupfs.field(self.directory / "cgroup.events", "frozen") == 1


def kill_all(groups: Sequence[V2Group]) -> None:
    """Kill every process in all groups: first all groups at once, then wait for one after the other.

    Raises NotIsolatedError if some survive, after having tried all.
    """
    for group in groups:
        group.kill_at_once()
    failures = []
    for group in groups:
        try:
            group.kill()
        except NotIsolatedError as error:
            failures.append(str(error))
    if failures:
        raise NotIsolatedError("; ".join(failures))
