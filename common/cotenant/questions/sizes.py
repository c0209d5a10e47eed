"""The search for the fastest batch size: doubled or halved while that is faster, then half steps around the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

from cotenant.stats.launches import interval_around

FRESH = 3
"""Launches of each size, the best and the job's own by turns, that measure the gain."""
CLIMB = 1.01
"""The least ratio of a better rate: on a plateau a larger batch gains nothing, and takes longer to measure."""


class Trial(NamedTuple):
    """One launch of a batch size: the rate of all tenants together, or None and the reason; and whether it fits."""

    size: int
    rate: float | None
    flaw: str = ""
    fits: bool = True


class Gain(NamedTuple):
    """The rate of the best size over the rate of the job's own, with its 95 % interval."""

    ratio: float
    interval: tuple[float, float] | None


def logs_of(trials: Sequence[Trial], size: int) -> list[float]:
    """Return the logarithms of the rates of a size; none if it did not fit in one of its launches."""
    of_size = [trial for trial in trials if trial.size == size]
    fits = all(trial.fits for trial in of_size)
    return [math.log(trial.rate) for trial in of_size if trial.rate is not None] if fits else []


@dataclass(slots=True)
class Search:
    """A search from a job's `own` batch size, with the `leader` so far (0: none). Equal results lead to equal sizes.

    The leader was chosen in part for its noise, so only launches of both sizes after the choice measure the gain.
    """

    own: int
    trials: list[Trial] = field(default_factory=list)
    leader: int = 0
    _chosen: int | None = None

    def take(self, trial: Trial) -> None:
        """Take the result of a launch."""
        best = self.rate(self.leader)
        self.trials.append(trial)
        if self._chosen is None and trial.rate is not None and (best is None or trial.rate > best * CLIMB):
            self.leader = trial.size

    def sizes(self) -> Iterator[int]:
        """Yield the batch sizes to launch; `take` the result of each before the next one."""
        size = self.own
        while not self.leader and size:
            yield size
            size //= 2
        first = self.leader
        yield from self._climb(lambda size: 2 * size)
        if self.leader == first:
            yield from self._climb(lambda size: size // 2)
        best = self.leader
        for size in (3 * best // 2, 3 * best // 4):
            if self.leader == best and self._is_new(size):
                yield size
        if self.leader != self.own and self.rate(self.own) is not None:
            self._chosen = len(self.trials)
            rounds = range(2 * FRESH)  # Some launches may be INVALID.
            yield from (size for _ in rounds if self.gain is None for size in (self.own, self.leader))

    def _climb(self, following: Callable[[int], int]) -> Iterator[int]:
        while self._is_new(size := following(self.leader)):
            yield size
            if self.leader != size:
                return

    def _is_new(self, size: int) -> bool:
        return size > 0 and size not in (trial.size for trial in self.trials)

    def rate(self, size: int) -> float | None:
        """Return the geometric mean of the rates of a size's launches; None without one."""
        logs = logs_of(self.trials, size)
        return math.exp(fmean(logs)) if logs else None

    @property
    def gain(self) -> Gain | None:
        """The gain of the leader; None before FRESH launches of each size have measured it."""
        fresh = [] if self._chosen is None else self.trials[self._chosen :]
        sides = [logs_of(fresh, size) for size in (self.leader, self.own)]
        if min(map(len, sides)) < FRESH:
            return None
        center = fmean(sides[0]) - fmean(sides[1])
        return Gain(math.exp(center), interval_around(center, *sides))

    @property
    def best(self) -> int:
        """The leader, if its gain's interval lies above 1 or the job's own size has no rate; else the own size."""
        gain = self.gain
        is_faster = gain is not None and gain.interval is not None and gain.interval[0] > 1
        return self.leader if is_faster or self.rate(self.own) is None else self.own
