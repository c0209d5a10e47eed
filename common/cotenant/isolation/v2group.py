"""One v2 cgroup and all below it: who is inside, how they end, how it goes."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from cotenant.isolation import cgroupfs
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.patience import Patience, named

KILL_WAIT_S = 5.0
FREEZE_WAIT_S = 0.1
AGAIN_S = 0.1
"""After this who is still there is killed again: it may have joined since."""
POLL_S = 0.002


class Group:
    """The cgroup at `directory`, which may be gone already: that is as good as empty."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def pids(self) -> set[int]:
        """Return every process inside, 0 for one of another PID namespace. Raises NotIsolatedError."""
        try:
            return {pid for level in cgroupfs.subtree(self.directory) for pid in cgroupfs.pids(level)}
        except OSError as error:
            raise NotIsolatedError(f"the processes of a slice cannot be listed: {error}") from error

    def populated(self) -> bool:
        """Whether anybody lives inside: the dead that nobody has waited for do not count. Raises NotIsolatedError."""
        try:
            return bool(cgroupfs.field(self.directory / "cgroup.events", "populated"))
        except (OSError, ValueError) as error:
            raise NotIsolatedError(f"whether {self.directory} is empty cannot be read: {error}") from error

    def kill(self) -> None:
        """Kill every process inside and wait until none is left. Raises NotIsolatedError if some survive."""
        patience = Patience(KILL_WAIT_S)
        while self.populated():
            if not self.kill_at_once():
                self._kill_frozen()
            self._await_end()
            if patience.is_due() and not patience.goes_on(pids := self.pids()):
                raise NotIsolatedError(f"processes {named(pids)} in {self.directory} cannot be killed")

    def kill_at_once(self) -> bool:
        """Have the kernel kill all, those being forked included: Linux 5.14 can."""
        try:
            cgroupfs.write(self.directory / "cgroup.kill", "1")
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove it and all below. Raises NotIsolatedError, after having tried all."""
        failures = []
        for level in cgroupfs.subtree(self.directory):
            try:
                cgroupfs.remove(level)
            except OSError as error:
                failures.append(f"{level} cannot be removed: {os.strerror(error.errno or 0)}")
        if failures:
            raise NotIsolatedError("; ".join(failures))

    def _await_end(self) -> None:
        deadline = time.monotonic() + AGAIN_S
        while self.populated() and time.monotonic() < deadline:
            time.sleep(POLL_S)

    def _kill_frozen(self) -> None:
        with self._frozen():
            for pid in self.pids() - {0}:
                # A process of another user stays, and is named when the time is up.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    @contextlib.contextmanager
    def _frozen(self) -> Iterator[None]:
        """While frozen nothing forks, and no pid passes to another process. Linux 5.2 can; before, we do without."""
        state = self.directory / "cgroup.freeze"
        try:
            with contextlib.suppress(OSError):
                cgroupfs.write(state, "1")
                deadline = time.monotonic() + FREEZE_WAIT_S
                events = self.directory / "cgroup.events"
                while cgroupfs.field(events, "frozen") == 0 and time.monotonic() < deadline:
                    time.sleep(POLL_S / 2)
            yield
        finally:
            with contextlib.suppress(OSError):
                cgroupfs.write(state, "0")


def kill_all(groups: Sequence[Group]) -> None:
    """Kill every process in any of them: first all at once, then wait for one after the other.

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
