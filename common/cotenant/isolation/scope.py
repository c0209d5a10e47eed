"""Starts a run again in a scope: a cgroup that systemd makes and delegates to it, for v2's slices.

`systemd-run --scope` becomes the given command: the process, its number, its terminal and its parent stay. So signals
and the exit status pass through, and `stop` and `status` find the run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from cotenant.isolation.backend import SETUP_SCRIPT, NotIsolatedError, Refusal
from cotenant.isolation.runs import RunName
from cotenant.isolation.v2tree import ESSENTIAL, controllers, systemd_runs
from cotenant.machine.limits import V2, Mounts, memory_limit, quota_processors
from cotenant.machine.virtual import batch_system
from cotenant.procfs import read_text

SCOPE_VARIABLE = "COTENANT_SCOPE"
"""Holds the restarted run's name: exec keeps a process's number and start, so it is the name of no other run."""
TRIAL_LIMIT_S = 60.0
SESSION = "Log in as this user, by ssh or machinectl shell and not by su, so that a systemd session exists."
LIMITED = "Let the unit that sets them delegate its cgroup (Delegate=yes), or start the suite outside of them."
UNITS = Path("/etc/systemd/system")


def is_inside() -> bool:
    """Return whether this run was started again."""
    return os.environ.get(SCOPE_VARIABLE) == str(RunName())


def may_be_asked_for(mounts: Mounts) -> bool:
    """Return whether to ask systemd for cgroups: not inside a job, which a scope would escape, nor if v1 has memory."""
    return systemd_runs() and not batch_system() and not any(name in mounts.v1 for name in ESSENTIAL)


def has_delegated(cgroup: Path) -> bool:
    """Return whether a user's manager says that it has delegated this cgroup of a unit.

    Before systemd 254 the manager leaves no mark, and the user can write to all its cgroups alike; but it takes back
    the controllers of undelegated ones, and with them each limit.
    """
    if not os.geteuid() or not os.access(cgroup / "cgroup.subtree_control", os.W_OK):
        return False
    try:
        ended = _asked("systemctl", "--user", "show", "--property=Delegate,ControlGroup", "--", cgroup.name)
    except (OSError, subprocess.TimeoutExpired):
        return False
    said = dict(line.partition("=")[::2] for line in ended.stdout.splitlines())
    # Another unit elsewhere may have the same name.
    return said.get("Delegate") == "yes" and str(cgroup).endswith(said.get("ControlGroup") or "/")


def cpusets_remedy() -> str:
    """Return the way to have cpusets delegated to this user's sessions: the script or, after it, a new login."""
    unit = f"user@{os.geteuid()}.service"
    again = "log out everywhere and in again"
    if (UNITS / f"{unit}.d/cotenant.conf").exists():
        return f"They are delegated from the next login on: {again}, or as root: systemctl restart {unit}."
    return (
        f"{SETUP_SCRIPT}, then {again}. (Or as root: systemctl edit {unit}, with the line "
        "Delegate=cpu cpuset io memory pids below [Service].)"
    )


def offered(mounts: Mounts) -> frozenset[str]:
    """Return the controllers that systemd hands down to a scope: the manager's own."""
    assert mounts.v2 is not None
    return frozenset(controllers(_managers(mounts.v2)[-1] / "cgroup.controllers"))


def _asked(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a short command of systemd's. Raises OSError and TimeoutExpired."""
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TRIAL_LIMIT_S,
        check=False,
    )


def refusal(mounts: Mounts) -> Refusal | None:
    """Return why a run cannot be started again in a scope, None if it can: try a scope that ends at once."""
    assert mounts.v2 is not None
    managers = _managers(mounts.v2)
    shared = {mounts.v2, *managers, managers[-1] / ("app.slice" if os.geteuid() else "system.slice")}
    left = replace(mounts, chains={V2: tuple(level for level in mounts.chain() if level not in shared)})
    if memory_limit(left) or quota_processors(left) or any(read_text(at / "cpuset.cpus") for at in left.chain()):
        return Refusal("a scope of systemd's would escape the limits that we are under", LIMITED)
    try:
        ended = _asked(*_words(), "true")
    except subprocess.TimeoutExpired:
        return Refusal(f"systemd-run did not answer within {TRIAL_LIMIT_S:g} s", _session())
    except NotIsolatedError as error:
        return Refusal(str(error))
    except OSError as error:
        return Refusal(f"systemd-run cannot be executed: {error.strerror}")
    if ended.returncode:
        words = " ".join(ended.stderr.split())
        return Refusal(f"systemd-run failed with exit status {ended.returncode}: {words}", _session())
    return None


def start_again() -> NoReturn:
    """Become the same command line inside a scope. Raises NotIsolatedError."""
    line = [*_words(), sys.executable, *sys.orig_argv[1:]]
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    try:
        os.execve(line[0], line, {**os.environ, SCOPE_VARIABLE: str(RunName())})
    except OSError as error:
        raise NotIsolatedError(f"{line[0]} cannot be executed: {error.strerror}") from error


def _words() -> list[str]:
    """Return the words before the command: users ask their own manager, root the host's. Raises NotIsolatedError."""
    if (program := shutil.which("systemd-run")) is None:
        raise NotIsolatedError("systemd-run is not on PATH")
    whose = ["--user"] if os.geteuid() else []
    # By default systemd counts the processes of all slices together, and one fork bomb would stop all tenants.
    return [program, *whose, "--scope", "-p", "Delegate=yes", "-p", "TasksMax=infinity", "--quiet", "--collect", "--"]


def _session() -> str:
    return SESSION if os.geteuid() else ""


def _managers(top: Path) -> list[Path]:
    """Return the cgroups between the hierarchy's root and the units, the manager's own last."""
    if not (user := os.geteuid()):
        return [top]
    slices = top / "user.slice", top / "user.slice" / f"user-{user}.slice"
    return [*slices, slices[-1] / f"user@{user}.service"]
