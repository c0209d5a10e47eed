"""The interface of every meter, and a launch's samples as spreads and series, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cotenant.isolation.backend import LiveSlice

MOST_POINTS = 300
"""Most samples of a launch: five minutes once a second, and more than a picture can show."""

Look = dict[tuple[str, ...], float]
"""One sample: values by their place below `meters.series` of a record; the last name ends with the unit."""


class Sampler(Protocol):
    """One meter. None of its methods ever raises for a quantity that a host lacks: `absent` names it."""

    name: str
    """Its key in a record's `meters`."""

    def start(self, slices: Sequence[LiveSlice]) -> None:
        """Take the snapshot from which differences count, just before t0."""

    def sample(self) -> Look:
        """Look once, between t0 and the last DONE. Called on the runner's own thread, so it has to be cheap."""

    def result(self) -> dict[str, Any]:
        """Return the result since `start`, in a form that JSON can hold; empty without any sample."""

    def absent(self) -> dict[str, str]:
        """Return the remedy for each unavailable quantity, by its name."""


@dataclass(slots=True)
class SampleSpread:
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

    def result(self) -> dict[str, float] | None:
        """Return the spread as records keep it, None without any value."""
        if not self.n:
            return None
        return {"n": self.n, "min": self.least, "mean": self.total / self.n, "max": self.most}


class TimeSeries:
    """Keeps every k-th look; k begins at 1, and doubles whenever there are more than MOST_POINTS of them."""

    def __init__(self) -> None:
        self._points: list[tuple[int, Look]] = []
        self._looks, self._step = 0, 1

    def add(self, at_ns: int, look: Look) -> None:
        """Take the values of one look, at a moment of t0's clock."""
        if self._looks % self._step == 0:
            self._points.append((at_ns, look))
        self._looks += 1
        if len(self._points) > MOST_POINTS:
            self._points = self._points[::2]
            self._step *= 2

    def result(self, t0_ns: int) -> dict[str, Any]:
        """Return the series in the form of records: seconds after t0, and a value or null for each of them.

        `every_s` is the mean time between two points, null for a single one.
        """
        times_ns = [at_ns for at_ns, _ in self._points]
        spans = len(times_ns) - 1
        series: dict[str, Any] = {
            "every_s": round((times_ns[-1] - times_ns[0]) / spans / 1e9, 3) if spans > 0 else None,
            "at_s": [round((at_ns - t0_ns) / 1e9, 6) for at_ns in times_ns],
        }
        for path in dict.fromkeys(path for _, look in self._points for path in look):
            within = series
            for name in path[:-1]:
                within = within.setdefault(name, {})
            within[path[-1]] = [_short(look.get(path)) for _, look in self._points]
        return series


def _short(value: float | None) -> float | None:
    """Round a value: more digits than any meter has would fill a record."""
    return round(value, 4) if isinstance(value, float) else value
