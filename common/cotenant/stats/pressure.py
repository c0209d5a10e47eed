"""Curves over pressure: the share that a job keeps of its rate beside a neighbour of known pressure, by level.

Bubble-Up (Mars, Tang, Hundt, Skadron and Soffa, MICRO 2011) measures such curves.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import StatisticsError, linear_regression

from cotenant.stats.kept import Kept

REACHED = 0.8


@dataclass(frozen=True, slots=True)
class Point:
    """The share kept beside one level, in percent, with the neighbour's items a second as `achieved`."""

    level: int
    achieved: float
    kept: Kept


@dataclass(frozen=True)
class Curve:
    """Points by rising level, all above 0; their shares are relative to a neighbour at rest."""

    points: tuple[Point, ...]

    @functools.cached_property
    def hinge(self) -> Hinge:
        """The hinge through rest and its points, over the neighbour's rate."""
        return hinge([(0.0, 1.0), *((point.achieved, point.kept.value) for point in self.points)])

    @property
    def unreached(self) -> tuple[int, ...]:
        """The levels at which the neighbour got less than REACHED of the rate in proportion to its lowest one: the
        resource gave no more, and the share kept there does not belong to a higher pressure."""
        least = REACHED * self.points[0].achieved / self.points[0].level
        return tuple(point.level for point in self.points if point.achieved < least * point.level)

    @property
    def losing(self) -> tuple[int, ...]:
        """The levels with an interval below 1."""
        return tuple(
            point.level for point in self.points if point.kept.interval is not None and point.kept.interval[1] < 1
        )

    @property
    def loses(self) -> bool:
        """True if the interval of the highest level is below 1: otherwise slope and knee are noise."""
        return self.points[-1].level in self.losing


@dataclass(frozen=True, slots=True)
class Hinge:
    """All is kept up to the `knee`, then `slope` is lost with each unit: kept = 1 - slope max(0, x - knee)."""

    slope: float
    knee: float | None
    """In the neighbour's items per second; None if nothing is lost."""


def hinge(points: Sequence[tuple[float, float]]) -> Hinge:
    """Return the hinge of least squares through (x, share): exact, even if the knee is no point.

    If the points beyond the knee are known, the best line through them is by ordinary least squares, if it reaches 1
    between the last point before them and the first of them; else the knee is one of these two.
    """
    ordered = sorted(points)

    def squares(candidate: Hinge) -> float:
        return sum((1 - candidate.slope * max(0.0, x - (candidate.knee or 0.0)) - share) ** 2 for x, share in ordered)

    xs = sorted({x for x, _ in ordered})
    candidates = [Hinge(0.0, None)]
    for before, after in itertools.pairwise(xs):
        beyond = [(x, share) for x, share in ordered if x >= after]
        # The squares of small distances may vanish.
        if spread := sum((x - before) ** 2 for x, _ in beyond):
            candidates.append(Hinge(sum((x - before) * (1 - share) for x, share in beyond) / spread, before))
        with contextlib.suppress(StatisticsError):  # no line goes through points of one x
            slope, height = linear_regression(*zip(*beyond, strict=True))
            if slope < 0 and before <= (knee := (1 - height) / slope) <= after:
                candidates.append(Hinge(-slope, knee))
    return min((candidate for candidate in candidates if candidate.slope >= 0), key=squares)
