"""Processes found by the marker that a run leaves in their environment, and their end.

It serves where no cgroup holds the processes of a tenant, and sweeps what a dead run left there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from cotenant.isolation.backend import RUN_VARIABLE, NotIsolatedError, RunName, start_ticks
from cotenant.protocol.messages import TENANT_VARIABLE

KILL_WAIT_S = 5.0


def marked(run: str, tenant: int | None = None) -> list[int]:
    """Return the living processes that carry the marker of `run`, or of one tenant of it."""
    wanted = {f"{RUN_VARIABLE}={run}".encode()}
    if tenant is not None:
        wanted.add(f"{TENANT_VARIABLE}={tenant}".encode())
    return [pid for pid, variables in _environments() if wanted <= variables and start_ticks(pid) is not None]


def kill_marked(run: str, tenant: int | None = None) -> None:
    """Kill the marked processes until none is left. Raises NotIsolatedError if some outlive KILL_WAIT_S."""
    deadline = time.monotonic() + KILL_WAIT_S
    while pids := marked(run, tenant):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise NotIsolatedError(f"processes {pids} of run {run} cannot be killed")
        time.sleep(0.005)


def sweep_marked() -> list[str]:
    """Kill the processes of runs whose runner is dead; return those runs' names."""
    dead = set()
    for _, variables in _environments():
        for variable in variables:
            if variable.startswith(RUN_VARIABLE.encode() + b"="):
                name = RunName.parse(variable.partition(b"=")[2].decode(errors="replace"))
                if name is not None and not name.alive:
                    dead.add(str(name))
    for run in dead:
        kill_marked(run)
    return sorted(dead)


def _environments() -> list[tuple[int, set[bytes]]]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            found.append((int(entry.name), set((entry / "environ").read_bytes().split(b"\0"))))
        except OSError:
            continue
    return found
