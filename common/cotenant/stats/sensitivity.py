"""Sensitivity: the share that a job keeps of its rate beside a neighbour of known pressure, level by level.

The levels are blocks of one launch in random order, in rounds that hold each once (Bubble-Up, Mars et al., MICRO 2011,
measures such curves). A block is held against the block of level 0 of its own round, so that what drifts cancels.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

Timed = tuple[int, int, float]
"""An observation: the ns of its start and its end, and its items."""
ROUNDS = "rounds"
LAUNCHES = "launches"
REACHED = 0.8


@dataclass(frozen=True, slots=True)
class LevelBlock:
    """The time of one level: the neighbour's rate, and the job's rate, both in items per second."""

    level: int
    """Percent."""
    round: int
    achieved: float
    rate: float | None
    """Items of the job's observations that lie wholly inside over their time; None without any."""
    observations: int
    """How many these are."""


@dataclass(frozen=True, slots=True)
class Round:
    """Each level once: the rate at level 0 in items per second, and by level the logarithm of what is kept of it and
    what the neighbour achieved."""

    base: float
    logs: Mapping[int, float]
    achieved: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Point:
    """The kept share at one level: the rate over that at level 0 of the same round, geometric mean over `n` samples."""

    level: int
    achieved: float
    """Mean, items of the neighbour per second."""
    kept: float
    interval: tuple[float, float] | None
    """95 %; None below three samples, and at level 0, where 1 is no measurement."""
    n: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Points by rising level; a sample is a launch where there are three, else a round of a launch."""

    points: tuple[Point, ...]
    samples: str
    launches: int

    @property
    def hinge(self) -> Hinge:
        """The hinge through its points, over the neighbour's rate."""
        return hinge([(point.achieved, point.kept) for point in self.points])

    @property
    def unreached(self) -> tuple[int, ...]:
        """The levels at which the neighbour got less than REACHED of what its lowest one promises in proportion: the
        resource gave no more, and what is kept there is not that of a higher pressure."""
        pressed = [point for point in self.points if point.level]
        least = [REACHED * point.achieved / point.level for point in pressed[:1]]
        return tuple(point.level for point in pressed if point.achieved < least[0] * point.level)

    @property
    def losing(self) -> tuple[int, ...]:
        """The levels whose interval lies below 1."""
        return tuple(point.level for point in self.points if point.interval is not None and point.interval[1] < 1)

    @property
    def loses(self) -> bool:
        """Whether the interval of the highest level lies below 1: else slope and knee are of noise."""
        return self.points[-1].level in self.losing


@dataclass(frozen=True, slots=True)
class Hinge:
    """All is kept up to the `knee`, then `slope` is lost with each unit: kept = 1 - slope max(0, x - knee)."""

    slope: float
    knee: float | None
    """In the neighbour's items per second; None where nothing is lost."""


def blocks_of(levels: Sequence[int], pressure: Sequence[Timed], observed: Sequence[Timed]) -> list[LevelBlock]:
    """Return the blocks of a launch: the neighbour's observations, each of one of `levels`, and what lay inside.

    `pressure` and `observed` are by one clock. An observation of the job across a border is of no level.
    """
    rounds: dict[int, int] = defaultdict(int)
    blocks = []
    for level, (start_ns, end_ns, items) in zip(levels, pressure, strict=False):
        inside = [(end - start, count) for start, end, count in observed if start_ns <= start and end <= end_ns]
        # Not their median: of few batches one waits for data and the next finds it ready.
        took_ns = sum(duration_ns for duration_ns, _ in inside)
        rate = sum(count for _, count in inside) * 1e9 / took_ns if took_ns else None
        blocks.append(LevelBlock(level, rounds[level], items * 1e9 / (end_ns - start_ns), rate, len(inside)))
        rounds[level] += 1
    return blocks


def rounds_of(launches: Sequence[Sequence[LevelBlock]]) -> list[list[Round]]:
    """Return the rounds of each launch that has any with a rate at level 0."""
    by_launch = []
    for blocks in launches:
        by_round: dict[int, dict[int, LevelBlock]] = defaultdict(dict)
        for block in blocks:
            by_round[block.round][block.level] = block
        if rounds := [made for levels in by_round.values() if (made := _round(levels)) is not None]:
            by_launch.append(rounds)
    return by_launch


def _round(levels: Mapping[int, LevelBlock]) -> Round | None:
    rates = {level: block.rate for level, block in levels.items() if block.rate and 0 < block.rate < math.inf}
    if (base := rates.get(0)) is None:
        return None
    achieved = {level: block.achieved for level, block in levels.items() if 0 <= block.achieved < math.inf}
    return Round(base, {level: math.log(rate) - math.log(base) for level, rate in rates.items()}, achieved)


def samples_of(launches: Sequence[Sequence[Round]]) -> list[Round]:
    """Return a sample for each launch, the mean of its rounds, where there are three launches; else all rounds.

    Rounds of one launch share its state: what is estimated from them knows of no other launch.
    """
    # Not before: the runner makes blocks, and starts without scipy.
    from cotenant.stats.launches import INTERVAL_LAUNCHES

    if len(launches) < INTERVAL_LAUNCHES:
        return [made for rounds in launches for made in rounds]
    return [mean_of(rounds) for rounds in launches]


def mean_of(rounds: Sequence[Round]) -> Round:
    """Return the mean of some rounds: of rates the geometric one, of each level over the rounds that have it."""
    base = math.exp(fmean(math.log(each.base) for each in rounds))
    return Round(base, _means([each.logs for each in rounds]), _means([each.achieved for each in rounds]))


def _means(of_rounds: Sequence[Mapping[int, float]]) -> dict[int, float]:
    levels = sorted(set().union(*of_rounds))
    return {level: fmean(values[level] for values in of_rounds if level in values) for level in levels}


def curve(launches: Sequence[Sequence[LevelBlock]]) -> Curve | None:
    """Return the kept share at levels over the blocks of some launches; None where no round has a rate at level 0."""
    from cotenant.stats.launches import INTERVAL_LAUNCHES, interval_around

    by_launch = rounds_of(launches)
    if not by_launch:
        return None
    samples = samples_of(by_launch)
    whole = mean_of(samples)
    points = []
    for level in sorted(whole.logs.keys() & whole.achieved.keys()):
        logs = [sample.logs[level] for sample in samples if level in sample.logs]
        interval = interval_around(fmean(logs), logs) if level else None
        points.append(Point(level, whole.achieved[level], math.exp(whole.logs[level]), interval, len(logs)))
    return Curve(tuple(points), LAUNCHES if len(by_launch) >= INTERVAL_LAUNCHES else ROUNDS, len(by_launch))


def hinge(points: Sequence[tuple[float, float]]) -> Hinge:
    """Return the hinge of least squares through (x, share): exact, also where the knee is no point.

    Where the points beyond the knee are known, the best line through them is that of ordinary least squares, if it
    reaches 1 between the last point before them and the first of them; else the knee is one of these two.
    """
    ordered = sorted(points)
    xs = sorted({x for x, _ in ordered})
    candidates = [Hinge(0.0, None)]
    for before, after in itertools.pairwise(xs):
        beyond = [(x, share) for x, share in ordered if x >= after]
        candidates.append(_hinge_at(before, beyond))
        if (line := _line(beyond)) is not None and line[1] < 0 and before <= (knee := (1 - line[0]) / line[1]) <= after:
            candidates.append(Hinge(-line[1], knee))
    return min((each for each in candidates if each.slope >= 0), key=lambda each: _squares(each, ordered))


def _hinge_at(knee: float, beyond: Sequence[tuple[float, float]]) -> Hinge:
    """Return the best hinge with this knee."""
    distances = [x - knee for x, _ in beyond]
    products = sum(distance * (1 - share) for distance, (_, share) in zip(distances, beyond, strict=True))
    # Distances may be too small for their squares.
    spread = sum(distance**2 for distance in distances)
    return Hinge(products / spread, knee) if spread else Hinge(0.0, None)


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Return intercept and slope of least squares; None where all points have one x."""
    middle, height = fmean(x for x, _ in points), fmean(y for _, y in points)
    if not (spread := sum((x - middle) ** 2 for x, _ in points)):
        return None
    slope = sum((x - middle) * (y - height) for x, y in points) / spread
    return height - slope * middle, slope


def _squares(of: Hinge, points: Sequence[tuple[float, float]]) -> float:
    return sum((1 - of.slope * max(0.0, x - (of.knee or 0.0)) - share) ** 2 for x, share in points)
