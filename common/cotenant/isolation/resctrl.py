"""Counters of cache and memory bandwidth per slice: monitoring groups of resctrl (Linux, arch/x86/resctrl).

A group counts the use by the processes in its `tasks`, and their children inherit it. Nothing is allocated: schemata
stay as they are. Standard library only: the reaper removes groups, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cotenant.isolation.runs import RunName
from cotenant.procfs import numbered, read_int, read_text

PLACE = "sys/fs/resctrl"
PREFIX = "cotenant."
COUNTERS = {
    "llc_occupancy": "llc_occupancy_bytes",
    "mbm_total_bytes": "memory_traffic_bytes",
    "mbm_local_bytes": "local_traffic_bytes",
}
"""The kernel's files of a cache's domain, and their names in a record."""
FLAGS = ("cqm_llc", "cqm_occup_llc", "cqm_mbm_total", "cqm_mbm_local")
"""Flags in /proc/cpuinfo; AMD's processors have the same names."""


@dataclass(frozen=True, slots=True)
class Monitoring:
    """The counters of this host: `features` of a mounted resctrl, and whether the `processor` has any."""

    features: tuple[str, ...]
    processor: bool


def monitoring(root: Path = Path("/")) -> Monitoring:
    """Return the counters that the host below `root` has for groups of processes."""
    features = read_text(root / PLACE / "info/L3_MON/mon_features").split()
    flags = read_text(root / "proc/cpuinfo")
    return Monitoring(
        tuple(name for name in COUNTERS if name in features), any(f" {flag} " in f"{flags} " for flag in FLAGS)
    )


def group_of(run: str, tenant: int, root: Path = Path("/")) -> Path:
    """Return the directory of a tenant's group."""
    return root / PLACE / "mon_groups" / f"{PREFIX}{run}.t{tenant}"


def make_group(group: Path, pids: Iterable[int], root: Path = Path("/")) -> None:
    """Make a group of these processes with all their threads. Raises OSError where the hardware has no more groups."""
    group.mkdir()
    for pid in pids:
        for thread in numbered(root / f"proc/{pid}/task"):
            # One that has just ended.
            with contextlib.suppress(ProcessLookupError), (group / "tasks").open("w") as tasks:
                tasks.write(str(thread))


def counters(group: Path) -> dict[str, int]:
    """Return a group's counters over all caches; none of those that the kernel calls `Unavailable` or lacks."""
    caches = [group / "mon_data" / f"mon_L3_{number:02}" for number in numbered(group / "mon_data", "mon_L3_")]
    sums: dict[str, int] = {}
    for file, name in COUNTERS.items():
        values = [read_int(cache / file) for cache in caches]
        known = [value for value in values if value is not None]
        if known and len(known) == len(values):
            sums[name] = sum(known)
    return sums


def remove_groups(run: str, root: Path = Path("/")) -> None:
    """Remove the groups of a run, whose processes go back to the root's."""
    for group in (root / PLACE / "mon_groups").glob(f"{PREFIX}{run}.t*"):
        with contextlib.suppress(OSError):
            group.rmdir()


def sweep(root: Path = Path("/")) -> None:
    """Remove the groups that dead runs have left."""
    for group in (root / PLACE / "mon_groups").glob(f"{PREFIX}*"):
        run = RunName.parse(group.name.removeprefix(PREFIX).rpartition(".t")[0])
        if run is not None and run.alive is False:
            remove_groups(str(run), root)
