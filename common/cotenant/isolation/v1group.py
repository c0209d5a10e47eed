"""A v1 cgroup as one thing: a directory of the same relative path in every hierarchy."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from cotenant.isolation import cgroupfs
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.patience import Patience, named
from cotenant.machine.limits import V2

KILL_WAIT_S = 5.0
AT_ONCE_S = 0.05
"""What a kill by the twin may take before the freezer is tried: who lives outside the twin does not die of it."""
FREEZE_WAIT_S = 0.1


class Group:
    """The directories of one path. `at` has them by controller; controllers mounted together share one."""

    def __init__(self, mounts: Mapping[str, Path], path: str) -> None:
        self.at = {name: mount / path for name, mount in mounts.items()}
        self.directories = tuple(sorted(set(self.at.values())))

    def make(self) -> None:
        """Make every directory. Raises OSError."""
        for directory in self.directories:
            cgroupfs.make(directory)

    def pids(self) -> set[int]:
        """Return every process inside, also in cgroups that a tenant made below its own. Raises NotIsolatedError.

        A twin lists 0 for a process of another PID namespace.
        """
        levels = [level for top in self.directories for level in cgroupfs.subtree(top)]
        try:
            return {pid for level in levels for pid in cgroupfs.pids(level)}
        except OSError as error:
            raise NotIsolatedError(f"the processes of a slice cannot be listed: {error}") from error

    def kill(self) -> None:
        """Kill every process inside and wait until none is left. Raises NotIsolatedError if some survive."""
        patience = Patience(KILL_WAIT_S)
        freeze_s = time.monotonic() + (AT_ONCE_S if self._kill_at_once() else 0.0)
        while pids := self.pids():
            if time.monotonic() >= freeze_s:
                self._kill_frozen()
            if patience.is_due() and not patience.goes_on(pids):
                raise NotIsolatedError(f"processes {named(pids)} in {self.at['memory']} cannot be killed")
            time.sleep(0.002)

    def remove(self) -> None:
        """Remove every directory and those below. Raises NotIsolatedError, after having tried all."""
        failures = []
        for top in self.directories:
            for level in cgroupfs.subtree(top):
                try:
                    cgroupfs.remove(level)
                except OSError as error:
                    failures.append(f"{level} cannot be removed: {os.strerror(error.errno or 0)}")
        if failures:
            raise NotIsolatedError("; ".join(failures))

    def _kill_at_once(self) -> bool:
        """Have the kernel kill all in the twin, those being forked included: Linux 5.14 can."""
        if V2 not in self.at:
            return False
        try:
            cgroupfs.write(self.at[V2] / "cgroup.kill", "1")
        except OSError:
            return False
        return True

    def _kill_frozen(self) -> None:
        with self._frozen():
            for pid in self.pids() - {0}:
                # A process of another user stays, and is named when the time is up.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    @contextlib.contextmanager
    def _frozen(self) -> Iterator[None]:
        """While frozen nothing forks, so a fork bomb cannot outrun its end, and no pid passes to another process.

        A kernel without a freezer does without; what cannot be thawed shows as what cannot be killed.
        """
        if "freezer" not in self.at:
            yield
            return
        state = self.at["freezer"] / "freezer.state"
        try:
            with contextlib.suppress(OSError):
                cgroupfs.write(state, "FROZEN")
                deadline = time.monotonic() + FREEZE_WAIT_S
                while cgroupfs.read(state) == "FREEZING" and time.monotonic() < deadline:
                    time.sleep(0.001)
            yield
        finally:
            for level in cgroupfs.subtree(self.at["freezer"]):
                with contextlib.suppress(OSError):
                    cgroupfs.write(level / "freezer.state", "THAWED")
