"""Backend `systemd`: the runner begins anew in a delegated scope, once a suite; inside it is v2 as everywhere.

`systemd-run --scope` becomes the command that it is given: the process, its number, its terminal and its parent stay,
so signals and the exit status pass through. One call costs 60 to 300 ms, a directory 0.05 ms.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from cotenant.isolation.backend import NotIsolatedError, Refusal
from cotenant.isolation.runs import RunName
from cotenant.isolation.v2 import CPUSETS, V2
from cotenant.isolation.v2tree import ESSENTIAL, controllers, systemd_runs
from cotenant.machine.limits import V2 as V2_HIERARCHY
from cotenant.machine.limits import Mounts, cgroup_mounts, memory_limit, quota_processors
from cotenant.machine.virtual import batch_system

SCOPE_VARIABLE = "COTENANT_SCOPE"
"""The name of the run that has begun anew: exec keeps a process's number and start, so no other run believes it."""
TRIAL_LIMIT_S = 60.0
LOOK = "import sys; sys.path.insert(0, sys.argv[1]); from cotenant.isolation import systemd; systemd.look_around()"
SESSION = "Log in as this user, by ssh or machinectl shell and not by su: that gives a session to ask."


@dataclass(frozen=True, slots=True)
class Offer:
    """The resources that a scope would give us."""

    controllers: frozenset[str]
    processors: frozenset[int]
    memory_bytes: int | None
    quota_processors: float | None


class Systemd(V2):
    """Slices in a scope of our own. Outside of it only `probe` serves, and `begin_anew` to get there."""

    name = "systemd"

    def __init__(self, mounts: Mounts, base: str | None = None) -> None:
        super().__init__(mounts, base)
        self.inside = os.environ.get(SCOPE_VARIABLE) == str(RunName())

    def probe(self) -> Refusal | None:
        if self.inside:
            return super().probe()
        if not systemd_runs():
            return Refusal("systemd is not this host's init")
        if self._named:
            return Refusal("a base by name leaves nothing to ask of systemd", "Leave --cgroup-base out.")
        if batch := batch_system():
            return Refusal(f"a scope of systemd's would leave the job that {batch} gave us")
        if on_v1 := [name for name in ESSENTIAL if name in self._mounts.v1]:
            return Refusal(f"a scope of systemd's is of cgroup v2, and the controller {on_v1[0]} is mounted on v1 here")
        try:
            offer = _offer()
        except NotIsolatedError as error:
            return Refusal(str(error), SESSION if os.geteuid() else "")
        if missing := [name for name in ESSENTIAL if name not in offer.controllers]:
            return Refusal(f"systemd delegates no controller {missing[0]} to us", CPUSETS)
        if lost := self._lost(offer):
            return Refusal(f"a scope of systemd's would leave the limits that we are under ({lost})")
        if self._tree is not None:
            self._hold(self._tree.top, offer.controllers)
        if "cpuset" not in offer.controllers:
            return Refusal("systemd delegates memory, but no cpusets to us", CPUSETS, partial=True)
        return None

    def begin_anew(self) -> NoReturn:
        """Become the same command line inside a scope of our own. Raises NotIsolatedError."""
        line = [*_systemd_run(), sys.executable, *sys.orig_argv[1:]]
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        try:
            os.execve(line[0], line, {**os.environ, SCOPE_VARIABLE: str(RunName())})
        except OSError as error:
            raise NotIsolatedError(f"{line[0]} cannot be executed: {error.strerror}") from error

    def _is_delegated(self, top: Path) -> bool:
        """Inside it is the scope that we have asked for; a user's manager (of systemd 252) marks none."""
        return self.inside or super()._is_delegated(top)

    def _lost(self, offer: Offer) -> str:
        """Say which limit above us a scope elsewhere would not have: our own cgroup's limits are the machine."""
        memory_bytes, quota = memory_limit(self._mounts), quota_processors(self._mounts)
        lost = {
            "memory": memory_bytes is not None and (offer.memory_bytes is None or offer.memory_bytes > memory_bytes),
            "processors": not offer.processors <= os.sched_getaffinity(0),
            "processor time": quota is not None and (offer.quota_processors is None or offer.quota_processors > quota),
        }
        return ", ".join(what for what, is_lost in lost.items() if is_lost)


def _systemd_run() -> list[str]:
    """Return the words before the command. Raises NotIsolatedError without the program."""
    program = shutil.which("systemd-run")
    if program is None:
        raise NotIsolatedError("systemd-run is not on PATH")
    whose = ["--user"] if os.geteuid() else []
    # By itself systemd counts the processes of all slices together, and one fork bomb would stop everybody.
    properties = ["--property=Delegate=yes", "--property=TasksMax=infinity"]
    return [program, *whose, "--scope", *properties, "--quiet", "--collect", "--"]


def _offer() -> Offer:
    """Ask systemd for a scope and look around in it. Raises NotIsolatedError with the words of systemd-run."""
    line = [*_systemd_run(), sys.executable, "-I", "-S", "-c", LOOK, str(Path(__file__).resolve().parents[2])]
    try:
        ended = subprocess.run(
            line, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=TRIAL_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise NotIsolatedError(f"systemd-run did not answer within {TRIAL_LIMIT_S:g} s") from None
    except OSError as error:
        raise NotIsolatedError(f"{line[0]} cannot be executed: {error.strerror}") from error
    offer = None
    if ended.returncode == 0:
        with contextlib.suppress(ValueError):
            offer = json.loads(ended.stdout)
    if offer is None:
        words = " ".join(ended.stderr.split())
        raise NotIsolatedError(f"systemd-run failed with exit status {ended.returncode}: {words}")
    return Offer(**offer | {name: frozenset(offer[name]) for name in ("controllers", "processors")})


def look_around() -> None:
    """Print the offer of the cgroup that we live in, as JSON: this runs inside a scope of systemd's, and ends."""
    mounts = cgroup_mounts()
    own = mounts.own.get(V2_HIERARCHY)
    offer = {
        "controllers": [] if own is None else sorted(controllers(own / "cgroup.controllers")),
        "processors": sorted(os.sched_getaffinity(0)),
        "memory_bytes": memory_limit(mounts),
        "quota_processors": quota_processors(mounts),
    }
    print(json.dumps(offer))
