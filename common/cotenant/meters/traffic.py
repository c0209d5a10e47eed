"""Meters each slice's last-level cache and memory traffic, where the processor counts them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cotenant.isolation import resctrl
from cotenant.isolation.backend import LiveSlice
from cotenant.isolation.runs import RunName
from cotenant.meters.sampler import Look, SampleSpread
from cotenant.procfs import read_text

LACKS = "a processor with monitoring of cache and bandwidth, bare, and: mount -t resctrl resctrl /sys/fs/resctrl"
NO_SLICES = "slices whose processes are known: --isolation v1, v2 or systemd"
OCCUPANCY = "llc_occupancy_bytes"


class CacheTraffic:
    """Bytes of the last-level cache, and bytes moved between memory and caches, by tenant's number."""

    name = "traffic"

    def __init__(self, tenants: Sequence[int], root: Path = Path("/")) -> None:
        self._tenants = tenants
        self._root = root
        self._run = str(RunName())
        self._groups: dict[int, Path] = {}
        self._first: dict[int, dict[str, int]] = {}
        self._occupied: dict[int, SampleSpread] = {}
        self._lacks = LACKS

    def start(self, slices: Sequence[LiveSlice]) -> None:
        if not resctrl.monitoring(self._root).features:
            return
        resctrl.sweep(self._root)
        for tenant, slice_ in zip(self._tenants, slices, strict=False):
            pids = {int(word) for file in slice_.entry.procs_files for word in read_text(file).split()}
            if not pids:
                # A group of nobody counts zeros.
                self._lacks = NO_SLICES
                continue
            group = resctrl.group_of(self._run, tenant, self._root)
            # The hardware counts for so many groups: others are not counted.
            with contextlib.suppress(OSError):
                resctrl.make_group(group, sorted(pids), self._root)
                self._groups[tenant] = group
                self._first[tenant] = resctrl.counters(group)

    def sample(self) -> Look:
        seen: Look = {}
        for tenant, group in self._groups.items():
            if (occupied := resctrl.counters(group).get(OCCUPANCY)) is not None:
                self._occupied.setdefault(tenant, SampleSpread()).add(occupied)
                seen[self.name, str(tenant), OCCUPANCY] = occupied
        return seen

    def result(self) -> dict[str, Any]:
        """End the groups: their counters go with them."""
        results: dict[str, Any] = {}
        for tenant, group in self._groups.items():
            last, first = resctrl.counters(group), self._first[tenant]
            moved = {name: last[name] - first[name] for name in last if name in first and name != OCCUPANCY}
            spread = self._occupied.get(tenant)
            results[str(tenant)] = moved | ({} if spread is None else {OCCUPANCY: spread.result()})
        self.close()
        return results

    def close(self) -> None:
        """Remove the groups, whoever is in them."""
        if self._groups:
            resctrl.remove_groups(self._run, self._root)
            self._groups = {}

    def absent(self) -> dict[str, str]:
        return {} if self._first else {self.name: self._lacks}
