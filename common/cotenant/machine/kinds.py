"""The kinds of a host's cores, if it has several: by the kernel's names, by part, or by their abilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from cotenant.machine.models import part_names
from cotenant.procfs import read_int, read_list, read_text
from cotenant.text import joined

_CPU = "sys/devices/system/cpu"
_HYBRID = ("core", "atom", "lowpower")  # the names of x86 kernels' separate counters
_GAP = 1.2
"""Kinds of core differ by this factor in clock or capacity; bins of one kind differ by a few per cent."""


def kinds(root: Path, core_of: Mapping[int, int]) -> dict[int, str]:
    """Return the kind of each processor's core; nothing if all are of one kind. `core_of`: of usable processors."""
    named = (_by_counters, _by_part, _by_capacity, _by_clock_and_cache)
    found = next((found for by in named if (found := by(root, sorted(set(core_of.values()))))), {})
    of_each = {number: found.get(core, "") for number, core in core_of.items()}
    return of_each if len(set(of_each.values())) > 1 else {}


def _by_counters(root: Path, cores: Iterable[int]) -> dict[int, str]:
    return {number: name for name in _HYBRID for number in read_list(root / f"sys/devices/cpu_{name}/cpus")}


def _by_part(root: Path, cores: Iterable[int]) -> dict[int, str]:
    return part_names(root)


def _by_capacity(root: Path, cores: Sequence[int]) -> dict[int, str]:
    if read_int(root / _CPU / f"cpu{cores[0]}/cpu_capacity") is None:
        return {}
    capacities = {core: read_int(root / _CPU / f"cpu{core}/cpu_capacity") or 0 for core in cores}
    return _apart(capacities, lambda capacity: f"capacity {capacity}")


def _by_clock_and_cache(root: Path, cores: Iterable[int]) -> dict[int, str]:
    """Name cores without separate counters: Zen 5c differs by its clock, Intel's small cores by their first cache."""
    clocks = {core: read_int(root / _CPU / f"cpu{core}/cpufreq/cpuinfo_max_freq") or 0 for core in cores}
    caches = {core: read_text(root / _CPU / f"cpu{core}/cache/index0/size") for core in cores}
    clock_of = _apart(clocks, lambda clock_khz: f"{clock_khz / 1e6:.2g} GHz" if clock_khz else "")
    several = len(set(caches.values())) > 1
    return {
        core: joined(", ", clock_of[core], f"L1 {size}" if several and size else "") for core, size in caches.items()
    }


def _apart(values: Mapping[int, int], name: Callable[[int], str]) -> dict[int, str]:
    """Return the name of each core's group of values, made of its largest; a gap separates groups."""
    ascending = sorted(set(values.values()))
    ends = [low for low, high in pairwise(ascending) if high >= _GAP * low]
    last_of = {value: next((end for end in ends if value <= end), ascending[-1]) for value in ascending}
    return {core: name(last_of[value]) for core, value in values.items()}
