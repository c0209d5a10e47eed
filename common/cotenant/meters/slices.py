"""How much memory each tenant's slice holds while it is timed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cotenant.meters.sampler import Counted, Look, Spread

LACKS = "slices that count memory: --isolation v1, v2 or systemd"


class SliceMemory:
    """What the kernel charges to each slice: its processes, and the page cache of what they read."""

    name = "tenants"

    def __init__(self, tenants: Sequence[int]) -> None:
        """`tenants`: the numbers of those whose slices `start` is given, in that order."""
        self._numbers = tuple(map(str, tenants))
        self._slices: Sequence[Counted] = ()
        self._spreads: dict[str, Spread] = {}

    def start(self, slices: Sequence[Counted]) -> None:
        self._slices, self._spreads = slices, {}

    def sample(self) -> Look:
        seen: Look = {}
        for number, slice_ in zip(self._numbers, self._slices, strict=True):
            if (used_bytes := slice_.memory_used_bytes()) is not None:
                self._spreads.setdefault(number, Spread()).add(used_bytes)
                seen[self.name, number, "memory_used_bytes"] = used_bytes
        return seen

    def result(self) -> dict[str, Any]:
        return {number: {"memory_used_bytes": spread.told()} for number, spread in self._spreads.items()}

    def absent(self) -> dict[str, str]:
        return {} if self._spreads else {self.name: LACKS}
