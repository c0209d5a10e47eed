"""Finds and ends processes outside of any cgroup: by a run's marker, or as orphans that became our children.

A run leaves its marker in the environment of its processes. A daemon that has dropped it is still found: the runner is
the subreaper of its tenants, so their orphans do not go to init.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from cotenant.isolation.backend import NotIsolatedError, UnkillableError
from cotenant.isolation.runs import RunName
from cotenant.machine.limits import cgroup_mounts, own_cgroups
from cotenant.procfs import described, numbered, parent_of, process_of, read_text, start_ticks
from cotenant.protocol.messages import REAPER_VARIABLE, RUN_VARIABLE, TENANT_VARIABLE
from cotenant.text import listed

KILL_WAIT_S = 20.0
"""Thousands of processes of a fork bomb take long to end on a small host."""
REAPER_WAIT_S = 10.0
PR_SET_CHILD_SUBREAPER = 36
NO_MEMORY = "0 0 0 0 0 0 0"


def marked(run: str, tenant: int | None = None, variable: str = RUN_VARIABLE) -> list[int]:
    """Return the living processes, except this one, that carry the marker of `run`, or of one tenant of it."""
    markers = _markers(run, tenant, variable)
    return [pid for pid in _pids() if markers <= _environment(pid)]


def kill_marked(run: str, tenant: int | None = None, variable: str = RUN_VARIABLE) -> None:
    """Kill the marked processes until none is left. Raises NotIsolatedError if some outlive KILL_WAIT_S.

    During an exec a process has no environment for a moment, so two empty searches in a row are needed.
    """
    deadline = time.monotonic() + KILL_WAIT_S
    before: list[int] | None = None
    while (pids := marked(run, tenant, variable)) or before != []:
        for pid in pids:
            _kill(pid, _markers(run, tenant, variable))
            if pid in (before or ()):
                _thaw(pid)
        if pids and time.monotonic() > deadline:
            raise UnkillableError(f"processes {listed(pids)} of run {run} cannot be killed")
        before = pids
        time.sleep(0.005)


def sweep_marked() -> list[str]:
    """Kill the processes of runs whose runner is dead; return those runs' names. Raises NotIsolatedError."""
    dead = sorted(_dead_runs(RUN_VARIABLE))
    for run in dead:
        kill_marked(run)
    return dead


def await_reapers() -> None:
    """Wait until no reaper of a dead run is at work: it clears more than a sweep could find.

    A reaper that has not ended after REAPER_WAIT_S hangs: it is killed, and its run is swept without it.
    """
    deadline = time.monotonic() + REAPER_WAIT_S
    while _dead_runs(REAPER_VARIABLE) and time.monotonic() < deadline:
        time.sleep(0.01)
    for run in _dead_runs(REAPER_VARIABLE):
        with contextlib.suppress(NotIsolatedError):
            kill_marked(run, variable=REAPER_VARIABLE)


def families(leaders: Mapping[int, int], run: str) -> dict[int, set[int]]:
    """Return the living processes of each tenant, given the leader of its session.

    They are its session, all processes with its marker, and all descendants of both. Reads /proc once.
    """
    since_ticks = start_ticks(os.getpid()) or 0
    seen = {pid: process_of(pid) for pid in _pids()}
    parent_of_living = {
        pid: process.parent
        for pid, process in seen.items()
        if process and process.state not in "ZX" and process.start_ticks >= since_ticks
    }
    markers = {tenant: _markers(run, tenant) for tenant in leaders}
    led_by = {leader: tenant for tenant, leader in leaders.items()}

    @functools.cache
    def tenant_of(pid: int) -> int | None:
        if pid not in parent_of_living:
            return None
        with contextlib.suppress(OSError):
            if (session := os.getsid(pid)) in led_by:
                return led_by[session]
        environment = _environment(pid)
        marked_for = next((tenant for tenant in leaders if markers[tenant] <= environment), None)
        return tenant_of(parent_of_living[pid]) if marked_for is None else marked_for

    return {tenant: {pid for pid in parent_of_living if tenant_of(pid) == tenant} for tenant in leaders}


def descent(pid: int, leaders: Mapping[int, int]) -> int | None:
    """Return the tenant whose session a process is in, or from whose leader it descends; None otherwise.

    No process can enter another's session or choose other ancestors; one that left both is found by its slice.
    """
    ancestor: int | None = pid
    while ancestor:
        try:
            session = os.getsid(ancestor)
        except OSError:
            return None
        for tenant, leader in leaders.items():
            if leader in (ancestor, session):
                return tenant
        ancestor = parent_of(ancestor)
    return None


def is_of(pid: int, leader: int, run: str, tenant: int) -> bool:
    """Return whether a process is in the session of a tenant's leader, or carries the tenant's marker."""
    with contextlib.suppress(OSError):
        if os.getsid(pid) == leader:
            return True
    return is_marked(pid, run, tenant)


def is_marked(pid: int, run: str, tenant: int) -> bool:
    """Return whether a process carries a tenant's marker, which any process of the same user can give itself."""
    return _markers(run, tenant) <= _environment(pid)


def adopt_orphans() -> set[int]:
    """Have the kernel make every orphan below this process its child (prctl(2)); Linux has had it since 3.4.

    Return its earlier children: a shell that became this process by exec leaves it the shell's own.
    """
    before = children()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    return before


def end_orphans(own_pids: set[int], since_ticks: int) -> dict[int, str]:
    """Kill this process's children except `own_pids`, then their children, which become ours; return descriptions.

    Skip processes started before `since_ticks`: as PID 1 of a container the runner inherits other programs' orphans.
    Raises NotIsolatedError if some outlive KILL_WAIT_S.
    """
    deadline, ended = time.monotonic() + KILL_WAIT_S, dict[int, str]()
    while orphans := {pid for pid in children() - own_pids if not _is_older(pid, since_ticks)}:
        for pid in orphans:
            # A dying process has no memory any more.
            if start_ticks(pid) is not None and read_text(Path(f"/proc/{pid}/statm")) not in ("", NO_MEMORY):
                ended.setdefault(pid, described(pid))
            # Another user's living process stays, and is named when the time is up; a dead one is waited for.
            send(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            raise UnkillableError(f"processes {listed(sorted(orphans))} that users left cannot be killed")
        time.sleep(0.002)
    return ended


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process, unless it is gone or another user's."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def children() -> set[int]:
    """Return this process's children, zombies included."""
    return {pid for pid in numbered(Path("/proc")) if parent_of(pid) == os.getpid()}


def now_ticks() -> int:
    """Return the time since boot in the unit of `start_ticks`."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK") // 1_000_000_000


def _is_older(pid: int, ticks: int) -> bool:
    started = start_ticks(pid)
    return started is not None and started < ticks


def _dead_runs(variable: str) -> set[str]:
    """Return the runs with a dead runner whose name a living process carries in this variable."""
    prefix = f"{variable}=".encode()
    values = {value for pid in _pids() for value in _environment(pid) if value.startswith(prefix)}
    runs = [RunName.parse(value.removeprefix(prefix).decode(errors="replace")) for value in values]
    return {str(run) for run in runs if run is not None and run.alive is False}


def _markers(run: str, tenant: int | None, variable: str = RUN_VARIABLE) -> set[bytes]:
    markers = {f"{variable}={run}".encode()}
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


def _thaw(pid: int) -> None:
    """Thaw the cgroup of a process that outlives SIGKILL in cgroup v1's freezer.

    A dead run's slices may lie below another base than ours, which no sweep of cgroups has thawed.
    """
    process, place = process_of(pid), own_cgroups(pid=pid).get("freezer")
    if process is not None and process.state == "D" and place and (mount := cgroup_mounts().v1.get("freezer")):
        with contextlib.suppress(OSError):
            (mount / place.lstrip("/") / "freezer.state").write_text("THAWED")


def _pids() -> list[int]:
    """Return every process but this one: a runner started inside a tenant carries a marker, too."""
    return [pid for pid in numbered(Path("/proc")) if pid != os.getpid()]


def _environment(pid: int) -> set[bytes]:
    """Return a process's variables; none if it is gone, a zombie, or another user's."""
    try:
        return set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return set()
