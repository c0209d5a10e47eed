"""Children of tenants whose parents are gone: with the runner as their subreaper none of them is lost to init.

Where no cgroup holds a tenant, a daemon that has dropped the run's marker could not be found otherwise.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

from cotenant.isolation.backend import NotIsolatedError, start_ticks
from cotenant.isolation.patience import Patience, named

PR_SET_CHILD_SUBREAPER = 36
END_WAIT_S = 5.0


def adopt_orphans() -> set[int]:
    """Have the kernel make every orphan below this process its child (prctl(2)); Linux has had it since 3.4.

    Return the children that were there before: a shell that became this process leaves it its own.
    """
    before = children()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    return before


def now_ticks() -> int:
    """Return the time after boot as `start_ticks` counts it."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK") // 1_000_000_000


def end_orphans(own: set[int], since_ticks: int) -> None:
    """Kill this process's children but those of `own`, and theirs, which become ours with that.

    Who lives since before `since_ticks` is no tenant's: the first process of a container gets everybody's orphans.
    Raises NotIsolatedError where END_WAIT_S go by in which they become no fewer.
    """
    patience = Patience(END_WAIT_S)
    while orphans := {pid for pid in children() - own if not _is_older(pid, since_ticks)}:
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
        if patience.is_due() and not patience.goes_on(orphans):
            raise NotIsolatedError(f"processes {named(orphans)}, which tenants left, cannot be killed")
        time.sleep(0.002)


def children() -> set[int]:
    """Return this process's children, the dead ones that nobody has waited for included."""
    pids = {int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()}
    return {pid for pid in pids if parent_of(pid) == os.getpid()}


def _is_older(pid: int, ticks: int) -> bool:
    started = start_ticks(pid)
    return started is not None and started < ticks


def parent_of(pid: int) -> int | None:
    """Return the parent of a process, dead ones included; None where it is gone or hidden (proc_pid_stat(5))."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return None
