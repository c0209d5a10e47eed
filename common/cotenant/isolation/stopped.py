"""Holding still the processes of a tenant that no cgroup holds: by SIGSTOP, each of them. Standard library only."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

from cotenant.isolation.processes import marked
from cotenant.procfs import numbered, process_of, read_text, start_ticks

STILL = frozenset("TtZX")
"""The states of a thread that does nothing: stopped, traced, dead."""


class Family:
    """The processes that carry a tenant's marker when they are first stopped, and their descendants from then on.

    A search by marker reads all of /proc, which is too much for every border of a block.
    """

    def __init__(self, run: str, tenant: int) -> None:
        self._run, self._tenant = run, tenant
        self._since_ticks: dict[int, int] = {}

    def stop(self) -> None:
        """Send each SIGSTOP; `stopped` says when they are."""
        self._send(self._living or marked(self._run, self._tenant))

    def stopped(self) -> bool:
        """Whether every thread of theirs is still. Whom one has forked just before it stopped is sent SIGSTOP, too."""
        living = self._living
        if not all(map(_is_still, living)):
            return False
        # Who is still forks no more: the last look finds nobody new. Nobody waits for the dead meanwhile.
        children = {child for pid in living for child in _children(pid)}.difference(living)
        new = [pid for pid in children if start_ticks(pid) is not None]
        self._send(new)
        return not new

    def go_on(self) -> None:
        """Send each SIGCONT."""
        for pid in self._living:
            _signal(pid, signal.SIGCONT)

    def bind(self, processors: Sequence[int]) -> list[int]:
        """Bind every thread of theirs to these processors; return those that hold."""
        return bind(self._living, processors)

    def _send(self, pids: Iterable[int]) -> None:
        for pid in pids:
            if (ticks := start_ticks(pid)) is not None:
                self._since_ticks[pid] = ticks
                _signal(pid, signal.SIGSTOP)

    @property
    def _living(self) -> list[int]:
        """The processes that are known; none whose number has passed to another."""
        self._since_ticks = {pid: ticks for pid, ticks in self._since_ticks.items() if start_ticks(pid) == ticks}
        return [*self._since_ticks]


def bind(pids: Iterable[int], processors: Sequence[int]) -> list[int]:
    """Bind every thread of these processes, which are held still, to these processors; return those that hold of all of
    them, in order."""
    held = {*processors}
    for thread in [thread for pid in pids for thread in numbered(Path(f"/proc/{pid}/task"))]:
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread, processors)
            held |= os.sched_getaffinity(thread)
    return sorted(held)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _children(pid: int) -> list[int]:
    """Return the children of all threads of a process (proc_pid_task(5)); none where the kernel does not list them."""
    threads = (Path(f"/proc/{pid}/task/{thread}/children") for thread in numbered(Path(f"/proc/{pid}/task")))
    return [int(word) for file in threads for word in read_text(file).split()]


def _is_still(pid: int) -> bool:
    busy = {_state(thread) for thread in numbered(Path(f"/proc/{pid}/task"))} - STILL
    # Behind vfork(2) a process waits in the kernel until its child becomes another program, which is stopped itself.
    return not busy or (busy == {"D"} and any(_state(child) in "Tt" for child in _children(pid)))


def _state(pid: int) -> str:
    """Return the state of a thread, of one that is gone that of the dead."""
    process = process_of(pid)
    return "X" if process is None else process.state
