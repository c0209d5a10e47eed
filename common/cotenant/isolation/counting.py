"""Readers of a slice's counters, on v1 and v2. None is what cannot be counted here: no reading ever fails a launch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cotenant.isolation import cgroupfs

STALLS = ("cpu", "memory", "io")


def number(path: Path) -> int | None:
    """Return the number that a file holds."""
    try:
        return int(cgroupfs.read(path))
    except (OSError, ValueError):
        return None


def field(path: Path, name: str) -> int | None:
    """Return the number beside `name` in a file of `name value` lines."""
    try:
        return cgroupfs.field(path, name)
    except (OSError, ValueError):
        return None


def stalls(directory: Path) -> dict[str, int]:
    """Return the stall totals of a v2 cgroup in microseconds, by the names that Counters has for them.

    Lines are `some avg10=0.00 avg60=0.00 avg300=0.00 total=0` (Documentation/accounting/psi.rst).
    """
    found: dict[str, int] = {}
    for what in STALLS:
        try:
            lines = cgroupfs.read(directory / f"{what}.pressure").splitlines()
            found |= {f"stalled_{what}_{line.split()[0]}_us": int(line.rpartition("total=")[2]) for line in lines}
        except (OSError, ValueError, IndexError):
            continue
    return found


def throttled(stats: Iterable[Path], name: str, unit_ns: int) -> tuple[int | None, int | None]:
    """Return (nanoseconds, times) that the quotas of these cgroups held their members back, from each `cpu.stat`.

    `name` is the field of the time, in units of `unit_ns`. A cgroup without a quota, or its controller, counts none.
    """
    read = [(field(path, name), field(path, "nr_throttled")) for path in stats]
    times = [one for _, one in read if one is not None]
    units = [one for one, _ in read if one is not None]
    return sum(units) * unit_ns if units else None, sum(times) if times else None
