"""What every meter can be asked, and the only state that most of them keep: the spread of one quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cotenant.isolation.backend import Counters

Look = dict[tuple[str, ...], float]
"""What one look saw: values by their place below `meters.series` of a record, whose last name ends with the unit."""


class Counted(Protocol):
    """A slice, as far as meters look at it."""

    def counters(self) -> Counters:
        """Return its cumulative counters now; never raises."""

    def memory_used_bytes(self) -> int | None:
        """Return what it holds now, None where nobody counts that; never raises."""


class Sampler(Protocol):
    """One meter. None of its methods ever raises for what a host does not have: `absent` names that."""

    name: str
    """Its key in a record's `meters`."""

    def start(self, slices: Sequence[Counted]) -> None:
        """Take the snapshot from which differences count, just before t0."""

    def sample(self) -> Look:
        """Look once, between t0 and the last DONE. Called on the runner's own thread, so it has to be cheap."""

    def result(self) -> dict[str, Any]:
        """Return what was seen since `start`, as JSON can hold it; empty where there was nothing to see."""

    def absent(self) -> dict[str, str]:
        """Return, by name, what could not be had and what would make it be had."""


@dataclass(slots=True)
class Spread:
    """Count, least, mean and most of a quantity, in constant memory however long a launch is."""

    n: int = 0
    least: float = 0.0
    most: float = 0.0
    total: float = 0.0

    def add(self, value: float) -> None:
        self.least = min(self.least, value) if self.n else value
        self.most = max(self.most, value) if self.n else value
        self.total += value
        self.n += 1

    def told(self) -> dict[str, float] | None:
        """Return the spread as records keep it, None without any value."""
        if not self.n:
            return None
        return {"n": self.n, "min": self.least, "mean": self.total / self.n, "max": self.most}
