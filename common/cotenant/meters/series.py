"""What the looks of a launch saw, one after the other, in bounded memory however long it is."""

from __future__ import annotations

from typing import Any

from cotenant.meters.sampler import Look

MOST = 300
"""Points of a launch: five minutes of looks once a second, and more than a picture can show."""


class Series:
    """Keeps every k-th look; k is 1, and doubles whenever there are more than MOST of them."""

    def __init__(self) -> None:
        self._points: list[tuple[int, Look]] = []
        self._looks, self._step = 0, 1

    def add(self, at_ns: int, look: Look) -> None:
        """Take what one look saw, at this moment of the clock that t0 is of."""
        if self._looks % self._step == 0:
            self._points.append((at_ns, look))
        self._looks += 1
        if len(self._points) > MOST:
            self._points = self._points[::2]
            self._step *= 2

    def told(self, t0_ns: int) -> dict[str, Any]:
        """Return the series as records keep them: seconds after t0, and a value or null for each of them.

        `every_s` is the mean time between two points, null of a single one.
        """
        times_ns = [at_ns for at_ns, _ in self._points]
        spans = len(times_ns) - 1
        told: dict[str, Any] = {
            "every_s": round((times_ns[-1] - times_ns[0]) / spans / 1e9, 3) if spans > 0 else None,
            "at_s": [round((one - t0_ns) / 1e9, 6) for one in times_ns],
        }
        for path in dict.fromkeys(path for _, look in self._points for path in look):
            within = told
            for name in path[:-1]:
                within = within.setdefault(name, {})
            within[path[-1]] = [_short(look.get(path)) for _, look in self._points]
        return told


def _short(value: float | None) -> float | None:
    """More digits than any meter has would make a record of them."""
    return round(value, 4) if isinstance(value, float) else value
