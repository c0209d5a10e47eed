"""Processes found by the marker that a run leaves in their environment, and their end.

It serves where no cgroup holds the processes of a tenant, and sweeps what a dead run left there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from cotenant.isolation.backend import NotIsolatedError, RunName
from cotenant.protocol.messages import REAPER_VARIABLE, RUN_VARIABLE, TENANT_VARIABLE

KILL_WAIT_S = 5.0
REAPER_WAIT_S = 10.0


def marked(run: str, tenant: int | None = None) -> list[int]:
    """Return the living processes, but not this one, that carry the marker of `run`, or of one tenant of it."""
    markers = _markers(run, tenant)
    return [pid for pid in _pids() if markers <= _environment(pid)]


def kill_marked(run: str, tenant: int | None = None) -> None:
    """Kill the marked processes until none is left. Raises NotIsolatedError if some outlive KILL_WAIT_S.

    In the middle of an exec a process has no environment for a moment, so nobody is found twice before it counts.
    """
    deadline = time.monotonic() + KILL_WAIT_S
    found: list[int] | None = None
    while (pids := marked(run, tenant)) or found != []:
        for pid in pids:
            _kill(pid, _markers(run, tenant))
        if pids and time.monotonic() > deadline:
            raise NotIsolatedError(f"processes {pids} of run {run} cannot be killed")
        found = pids
        time.sleep(0.005)


def sweep_marked() -> list[str]:
    """Kill the processes of runs whose runner is dead; return those runs' names. Raises NotIsolatedError."""
    dead = sorted(_dead_runs(RUN_VARIABLE))
    for run in dead:
        kill_marked(run)
    return dead


def await_reapers() -> None:
    """Wait until no reaper of a dead run is at work: it clears up more than a sweep could find.

    One that has not ended after REAPER_WAIT_S has stopped, and its run is swept without it.
    """
    deadline = time.monotonic() + REAPER_WAIT_S
    while _dead_runs(REAPER_VARIABLE) and time.monotonic() < deadline:
        time.sleep(0.01)


def _dead_runs(variable: str) -> set[str]:
    """Return the runs whose runner is dead of which a living process carries the name in this variable."""
    prefix = f"{variable}=".encode()
    values = {value for pid in _pids() for value in _environment(pid) if value.startswith(prefix)}
    runs = [RunName.parse(value.removeprefix(prefix).decode(errors="replace")) for value in values]
    return {str(run) for run in runs if run is not None and run.alive is False}


def _markers(run: str, tenant: int | None) -> set[bytes]:
    markers = {f"{RUN_VARIABLE}={run}".encode()}
    return markers if tenant is None else markers | {f"{TENANT_VARIABLE}={tenant}".encode()}


def _kill(pid: int, markers: set[bytes]) -> None:
    """Kill a process that still carries the markers; its descriptor keeps the number from passing to another."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        descriptor = os.pidfd_open(pid)
        try:
            if markers <= _environment(pid):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _pids() -> list[int]:
    """Return every process but this one: a runner that was started inside a tenant carries a marker too."""
    own = os.getpid()
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal() and int(path.name) != own]


def _environment(pid: int) -> set[bytes]:
    """Return a process's variables; none where it is gone, a zombie, or somebody else's."""
    try:
        return set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return set()
