"""The search of one job: the batch size, then one knob after the other, then the batch size again around there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from statistics import fmean

from cotenant.suite.variables import Value
from cotenant.tuning.sizes import CLIMB, LAUNCHES, REACH, SizeLimits, best_size, next_size
from cotenant.tuning.trial import Setting, Trial, assumed_spread, logs_by_setting, spread_of

REFINEMENT = 4
"""Launches of the second search for a batch size, where a knob has changed what a step takes."""
ROUNDS = 3
"""Launches of a knob's value that seems to be faster, before it is taken."""
REPEAT_AT = 5
"""After so many launches the best is launched again, where none was: how far equal launches differ has to be known."""
NO_EFFECT = "no_effect"
"""Outcome of a trial whose flag the benchmark accepts and does not heed."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A flag beside the batch size, and the values that are tried in the place of the job's own."""

    flag: str
    values: tuple[Value, ...] = ("",)


@dataclass(frozen=True, slots=True)
class Space:
    """What is searched: from `base`, which is the job as it is, over batch sizes (unless not `sized`) and knobs.

    `tenants` share a rate; a batch of which a step takes longer than `longest_step_s` is not tried.
    """

    base: Setting
    knobs: tuple[Knob, ...] = ()
    sized: bool = True
    tenants: int = 1
    longest_step_s: float | None = None

    @property
    def most_launches(self) -> int:
        """How many launches a search takes as a rule at most; a knob that is faster takes two to four more."""
        values = sum(len(knob.values) for knob in self.knobs)
        return (LAUNCHES if self.sized else 1) + values + (REFINEMENT if self.sized and self.knobs else 0)


@dataclass(slots=True)
class Search:
    """A search, and what is best so far. The same answers lead to the same settings: so it goes on after a break."""

    space: Space
    trials: list[Trial] = field(default_factory=list)
    best: Setting = field(init=False)
    _sizing: bool = True

    def __post_init__(self) -> None:
        self.best = self.space.base

    def take(self, trial: Trial) -> None:
        """Take the answer of a launch."""
        self.trials.append(trial)
        # Beside knobs the size stays, unless it did not fit when it was launched again.
        if (logs := self._logs()) and (self._sizing or self.best.batch_size not in logs):
            self.best = replace(self.best, batch_size=best_size(logs, self._spread()))

    def settings(self) -> Iterator[Setting]:
        """Yield the settings to launch. Before the next one is asked for, the last one's answer is taken."""
        yield self.space.base
        if self.space.sized:
            yield from self._sizes(LAUNCHES - 1)
        self._sizing = False
        for knob in self.space.knobs:
            for value in knob.values:
                yield from self._value(knob.flag, value)
        if self.space.sized and self.best.flags:
            self._sizing = True
            yield from self._sizes(REFINEMENT)

    def _sizes(self, launches: int) -> Iterator[Setting]:
        """Search the batch sizes of the best setting so far."""
        for _ in range(launches):
            size = self._next_size()
            if size is None:
                return
            yield replace(self.best, batch_size=size)
            if self.trials[-1].outcome == NO_EFFECT:
                return

    def _next_size(self) -> int | None:
        of_flags = [trial for trial in self.trials if trial.setting.flags == self.best.flags]
        too_large = [trial.setting.batch_size for trial in self.trials if trial.too_large]
        below = min(too_large, default=None)
        logs = self._logs()
        if not logs:
            # Not even the job as it is has a rate: only a smaller batch may.
            tried = min((trial.setting.batch_size for trial in of_flags), default=self.best.batch_size)
            return tried // REACH or (1 if tried > 1 else None) if of_flags[-1].too_large else None
        if len(of_flags) == REPEAT_AT and spread_of(logs_by_setting(self.trials))[0] is None:
            return self.best.batch_size
        without_rate = {trial.setting.batch_size for trial in of_flags} - logs.keys()
        limits = SizeLimits(below, self.space.longest_step_s, self._items_of_each())
        return next_size(logs, limits, self._spread(), without_rate)

    def _items_of_each(self) -> float:
        """Return what a step of all tenants counts for each one of its batch size; a row each where nobody says."""
        known = (trial.items / trial.setting.batch_size for trial in self.trials if trial.items is not None)
        return next(known, float(self.space.tenants))

    def _logs(self) -> dict[int, list[float]]:
        """Return the log rates of the batch sizes that were launched with the flags of the best setting."""
        logs = logs_by_setting(self.trials)
        return {setting.batch_size: of for setting, of in logs.items() if setting.flags == self.best.flags}

    def _value(self, flag: str, value: Value) -> Iterator[Setting]:
        """Try a value of a knob; it is taken where it is faster than the best so far beyond the spread."""
        candidate = self.best.with_flag(flag, value)
        for _ in range(ROUNDS):
            yield candidate
            if self._lead(candidate) <= CLIMB:
                return
            if len(logs_by_setting(self.trials).get(self.best, [])) < ROUNDS:
                yield self.best
        lead = self._lead(candidate)
        if lead > CLIMB and lead > 2 * self._error(candidate):
            self.best = candidate

    def _lead(self, candidate: Setting) -> float:
        """Return the logarithm of a setting's rate over the best one's; minus infinity where it has none."""
        logs = logs_by_setting(self.trials)
        if candidate not in logs or self.best not in logs:
            return -math.inf
        return fmean(logs[candidate]) - fmean(logs[self.best])

    def _error(self, candidate: Setting) -> float:
        logs = logs_by_setting(self.trials)
        return self._spread() * math.sqrt(1 / len(logs[candidate]) + 1 / len(logs[self.best]))

    def _spread(self) -> float:
        return assumed_spread(logs_by_setting(self.trials))
