"""Chooses the backend: the requested one, or the best available; and names remedies for its missing limits."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cotenant.errors import IsolationError
from cotenant.finding import Finding, info, warning
from cotenant.isolation import scope
from cotenant.isolation.backend import SETUP_SCRIPT, WEIGHT, Backend, NotIsolatedError, Refusal, UnkillableError
from cotenant.isolation.runs import checked_base
from cotenant.isolation.unenforced import Affinity, NoIsolation
from cotenant.isolation.v1 import V1
from cotenant.isolation.v2 import V2
from cotenant.machine.limits import Mounts, quota_processors
from cotenant.machine.space import host_memory
from cotenant.machine.virtual import batch_system

BY_CGROUPS = "slices by cgroups: --isolation require says what they need"
CPUSET = f"the controller cpuset, delegated to us: {SETUP_SCRIPT}"
PIDS = "the controller pids, in the kernel and delegated to us"
PRESSURE = "psi=1 on the kernel's command line"
UNIFIED = "cgroup v2: systemd.unified_cgroup_hierarchy=1 on the kernel's command line"
OF_V2 = {
    "processors": CPUSET,
    "nodes": CPUSET,
    "swap": "swapaccount=1 on the kernel's command line",
    "pids": PIDS,
    "pids_peak": "Linux 6.1, and the controller pids",
    "pids_refused": PIDS,
    "throttled": "the controller cpu, delegated to us",
    WEIGHT: "the controller cpu, delegated to us",
    "stalled": PRESSURE,
    "memory_peak_bytes": "Linux 5.19",
    "oom_group_kills": "Linux 5.17",
}
OF_V1 = {
    "processor_ns": "the v1 controller cpuacct, and no quota on cpu above us if both are mounted together",
    "throttled": "the v1 controller cpu, mounted",
    WEIGHT: "the v1 controller cpu, mounted, and no quota on it above us",
    "swap": "swapaccount=1 on the kernel's command line",
    "pids": "the v1 controller pids",
    "pids_peak": "Linux 6.1, and the v1 controller pids",
    "pids_refused": "the v1 controller pids",
    "stalled": "cgroup v2: systemd.unified_cgroup_hierarchy=1 psi=1 on the kernel's command line",
    "oom_events": UNIFIED,
    "oom_kills": "Linux 4.13",
    "oom_group_kills": UNIFIED,
}
TABLES = {"v1": OF_V1, "v2": OF_V2}


@dataclass(frozen=True, slots=True)
class Chosen:
    """A backend with findings: why `auto` had to degrade, and that the run starts itself again."""

    backend: Backend
    findings: tuple[Finding, ...] = ()

    def settle(self) -> None:
        """Move the runner to the place that the backend needs; if it starts itself again for that, never return.

        Raises IsolationError.
        """
        if isinstance(self.backend, V2) and self.backend.starts_again:
            with isolation_errors():
                scope.start_again()


@contextlib.contextmanager
def isolation_errors() -> Iterator[None]:
    """Turn a refusal of the kernel into a sentence. Raises IsolationError."""
    try:
        yield
    except UnkillableError as error:
        remedy = "`ps -o pid,stat,wchan,args -p PID` says where it waits in the kernel: mostly for a disk or a driver."
        raise IsolationError(f"The run could not be ended: {error}.", remedy) from error
    except NotIsolatedError as error:
        raise IsolationError(f"Isolation failed: {error}.", "--isolation none measures without it.") from error


def choose_backend(requested: str, mounts: Mounts, base: str | None) -> Chosen:
    """Return the backend to use.

    `auto` takes `v1`, else `v2`, if it enforces processors, nodes and memory; else `v2` if it enforces memory, with
    processors bound by affinity; else `affinity`. `require` refuses to degrade, as does a backend by name: both want
    every limit enforced, on swap only if there is any. Raises IsolationError.
    """
    if base is not None:
        checked_base(base)
    if requested == "none":
        return Chosen(NoIsolation())
    if requested == "affinity":
        return Chosen(Affinity())
    refusals: dict[str, Refusal] = {}
    partial: Backend | None = None
    for backend in _candidates(requested, mounts, base):
        refusal = backend.probe()
        if refusal is None and requested != "auto":
            refusal = _lack(backend)
        if refusal is None:
            return Chosen(backend, _restart(backend))
        refusals[backend.name] = refusal
        partial = partial or (backend if refusal.partial else None)
    if requested == "auto":
        return _degraded(partial, refusals)
    remedy = _remedy(refusals)
    wanted = "is required" if requested == "require" else f"by {requested} was asked for"
    raise IsolationError(
        f"Isolation {wanted}, but {_reasons(refusals)}.",
        f"{remedy} Or let it degrade with --isolation auto." if remedy else "Let it degrade with --isolation auto.",
    )


def _candidates(requested: str, mounts: Mounts, base: str | None) -> list[Backend]:
    """Return the backends to ask, the best first."""
    every: list[Backend] = [V1(_v1_places(mounts), base, mounts.chain("cpu")), V2(mounts, base)]
    return [backend for backend in every if requested in ("auto", "require", backend.name)]


def _lack(backend: Backend) -> Refusal | None:
    """Return the limits that an available backend does not enforce, as a refusal with the remedy; None if it has all.

    Swap needs no limit if there is none, nor does the number of processes in a batch system's job: there are only the
    job's cgroups, and Slurm makes none of `pids`.
    """
    missing = {"swap": host_memory().swap_bytes, "pids": not batch_system()}
    lacking = [what for what in backend.unenforced if missing.get(what, True)]
    if not lacking:
        return None
    ways = "; ".join(f"{way} (for {what})" for what, way in enabled_by(backend.name, lacking).items())
    return Refusal(f"it does not hold these limits here: {', '.join(lacking)}", f"It takes {ways}.", partial=True)


def _v1_places(mounts: Mounts) -> Mapping[str, Path]:
    """Return the parent of our v1 base in each hierarchy: its root, or in a batch system's job our own cgroup.

    The controller `cpu`, or `cpuacct` mounted together with it, is left out if a quota below its root applies to us:
    slices at the root would escape it.
    """
    if batch_system():
        return mounts.own
    root = mounts.v1.get("cpu")
    below = tuple(directory for directory in mounts.chain("cpu") if directory != root)
    limited = quota_processors(replace(mounts, chains={"cpu": below})) is not None
    return {name: at for name, at in mounts.v1.items() if not (limited and at == root)}


def _degraded(partial: Backend | None, refusals: Mapping[str, Refusal]) -> Chosen:
    some = f"slices only in part here (by {partial.name}; processors by affinity)" if partial is not None else ""
    finding = warning(
        f"Cgroups enforce {some or 'no slices here'}: {_reasons(refusals)}.",
        f"{_remedy(refusals)} --isolation require refuses to run without them.".strip(),
        rule="degraded",
    )
    backend = partial or Affinity()
    return Chosen(backend, (finding, *_restart(backend)))


def _restart(backend: Backend) -> tuple[Finding, ...]:
    """Return the finding on a run that starts itself again."""
    if not (isinstance(backend, V2) and backend.starts_again):
        return ()
    sentence = "A run starts itself again in a scope of systemd's: no cgroup around us is delegated to us."
    return (info(sentence, rule="starts_again"),)


def _reasons(refusals: Mapping[str, Refusal]) -> str:
    if len(refusals) == 1:
        return next(iter(refusals.values())).reason
    return "; ".join(f"{name}: {refusal.reason}" for name, refusal in refusals.items())


def _remedy(refusals: Mapping[str, Refusal]) -> str:
    """Return the most useful remedy: for a partial backend, else for the last one asked."""
    with_remedy = [refusal for refusal in refusals.values() if refusal.remedy]
    partial = [refusal for refusal in with_remedy if refusal.partial]
    return next((refusal.remedy for refusal in (*partial, *reversed(with_remedy))), "")


def enabled_by(backend: str, names: Iterable[str]) -> dict[str, str]:
    """Return the remedy for each of these limits and counters; one that the backend's table lacks is left out."""
    table = TABLES.get(backend)
    if table is None:
        return dict.fromkeys(names, BY_CGROUPS)
    # A family of counters, such as `stalled_cpu_some_us`, comes from one place.
    ways = {name: table.get(name) or table.get(name.partition("_")[0]) for name in names}
    return {name: what for name, what in ways.items() if what is not None}
