"""Tells whether processes stopped by signals are still, and moves them. Standard library only."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from cotenant.procfs import numbered, process_of, read_text

STILL = frozenset("TtZX")
"""The states of a thread that does nothing: stopped, traced, dead."""


def bind_stopped(pids: Iterable[int], processors: Sequence[int]) -> list[int]:
    """Bind every thread of these stopped processes to these processors; return all their effective processors, in
    order."""
    held = {*processors}
    for thread in [thread for pid in pids for thread in numbered(Path(f"/proc/{pid}/task"))]:
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread, processors)
            held |= os.sched_getaffinity(thread)
    return sorted(held)


def children_of(pid: int) -> list[int]:
    """Return the children of all threads of a process (proc_pid_task(5)); none if the kernel does not list them."""
    threads = (Path(f"/proc/{pid}/task/{thread}/children") for thread in numbered(Path(f"/proc/{pid}/task")))
    return [int(word) for file in threads for word in read_text(file).split()]


def is_still(pid: int) -> bool:
    """Return whether no thread of a process does anything."""
    busy = {_state(thread) for thread in numbered(Path(f"/proc/{pid}/task"))} - STILL
    # After vfork(2) a process waits in the kernel until its child becomes another program, and the child is stopped.
    return not busy or (busy == {"D"} and any(_state(child) in "Tt" for child in children_of(pid)))


def _state(pid: int) -> str:
    """Return the state of a thread; the state of a dead one if it is gone."""
    process = process_of(pid)
    return "X" if process is None else process.state
