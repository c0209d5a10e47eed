"""The search for one job: the batch size, then one knob after the other, then the batch size again nearby."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from statistics import fmean

from cotenant.suite.variables import Value
from cotenant.tuning.sizes import CLIMB, LAUNCHES, REACH, SizeLimits, best_size, next_size
from cotenant.tuning.trial import Setting, StepEstimate, Trial, assumed_spread, gain, logs_by_setting, spread_of

REFINEMENT = 4
"""Launches of the second search for a batch size, after knobs have changed the time or memory of a step."""
ROUNDS = 3
"""Launches of a knob's value that seems to be faster, before it is adopted."""
REPEAT_AT = 5
"""Launches after which the best is repeated if none was, so that the spread of equal launches is known."""
FRESH = 3
"""Launches of the best and of the job's own setting, by turns, that measure the gain."""
NO_EFFECT = "no_effect"
"""Outcome of a trial whose flag the benchmark accepts and ignores."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A flag other than the batch size, and the values to try instead of the job's own."""

    flag: str
    values: tuple[Value, ...] = ("",)


@dataclass(frozen=True, slots=True)
class Space:
    """The space of a search: from `base`, the job's own setting, over batch sizes (if `sized`) and knobs.

    Rates are of all `tenants` together; a batch whose step takes longer than `longest_step_s` is not tried.
    """

    base: Setting
    knobs: tuple[Knob, ...] = ()
    sized: bool = True
    tenants: int = 1
    longest_step_s: float | None = None

    @property
    def most_launches(self) -> int:
        """The launches of a search, as a rule at most; a knob with a faster value takes two to four more."""
        values = sum(len(knob.values) for knob in self.knobs)
        return (LAUNCHES if self.sized else 1) + values + (REFINEMENT if self.sized and self.knobs else 0) + 2 * FRESH


@dataclass(slots=True)
class Search:
    """A search, and the `leader` so far. Equal results lead to equal settings, so that it can be continued.

    The leader was in part chosen for its noise, so it and the job's own setting are launched FRESH times more, by
    turns, and only these launches measure the gain.
    """

    space: Space
    trials: list[Trial] = field(default_factory=list)
    leader: Setting = field(init=False)
    _sizing: bool = True
    _searched: int | None = None

    def __post_init__(self) -> None:
        self.leader = self.space.base

    @property
    def gain(self) -> StepEstimate | None:
        """The leader's rate over that of the job's own setting, from the launches after the choice; None before."""
        base = self.space.base
        return None if self._searched is None else gain(self.trials[self._searched :], base, self.leader)

    @property
    def best(self) -> Setting:
        """The leader, if its gain lies above 1 or the job's own setting has no rate; else the latter."""
        won, base = self.gain, self.space.base
        fits = base in logs_by_setting(self.trials)
        is_faster = won is not None and won.interval is not None and won.interval[0] > 1
        return self.leader if is_faster or not fits else base

    def take(self, trial: Trial) -> None:
        """Take the result of a launch."""
        self.trials.append(trial)
        # Knobs do not change the size, unless it did not fit in a repetition.
        if (logs := self._logs()) and (self._sizing or self.leader.batch_size not in logs):
            self.leader = replace(self.leader, batch_size=best_size(logs))

    def settings(self) -> Iterator[Setting]:
        """Yield the settings to launch; `take` the result of each before the next one."""
        yield self.space.base
        if self.space.sized:
            yield from self._sizes(LAUNCHES - 1)
        for knob in self.space.knobs:
            for value in knob.values:
                yield from self._value(knob.flag, value)
        if self.space.sized and self.leader.flags:
            yield from self._sizes(REFINEMENT)
        if self.leader != self.space.base and self.space.base in logs_by_setting(self.trials):
            leader, self._searched = self.leader, len(self.trials)
            for _ in range(FRESH):
                yield self.space.base
                yield leader

    def _sizes(self, launches: int) -> Iterator[Setting]:
        """Search batch sizes for the leader's flags."""
        self._sizing = True
        for _ in range(launches):
            if (size := self._next_size()) is None:
                break
            yield replace(self.leader, batch_size=size)
            if self.trials[-1].outcome == NO_EFFECT:
                break
        self._sizing = False

    def _next_size(self) -> int | None:
        of_flags = [trial for trial in self.trials if trial.setting.flags == self.leader.flags]
        below = min((trial.setting.batch_size for trial in self.trials if trial.too_large), default=None)
        logs = self._logs()
        if not logs:
            # Not even the job's own setting has a rate: only a smaller batch may fit.
            tried = min((trial.setting.batch_size for trial in of_flags), default=self.leader.batch_size)
            return tried // REACH or (1 if tried > 1 else None) if of_flags[-1].too_large else None
        if len(of_flags) == REPEAT_AT and spread_of(logs_by_setting(self.trials))[0] is None:
            return self.leader.batch_size
        without_rate = {trial.setting.batch_size for trial in of_flags} - logs.keys()
        limits = SizeLimits(below, self.space.longest_step_s, self._items_of_each())
        return next_size(logs, limits, without_rate)

    def _items_of_each(self) -> float:
        """Return the items of all tenants together in a step per unit of batch size; by default one a tenant."""
        known = (trial.items / trial.setting.batch_size for trial in self.trials if trial.items is not None)
        return next(known, float(self.space.tenants))

    def _logs(self) -> dict[int, list[float]]:
        """Return the log rates of the batch sizes that were launched with the leader's flags."""
        logs = logs_by_setting(self.trials)
        return {setting.batch_size: of for setting, of in logs.items() if setting.flags == self.leader.flags}

    def _value(self, flag: str, value: Value) -> Iterator[Setting]:
        """Try a value of a knob, and adopt it if it is faster than the leader beyond the spread."""
        candidate = self.leader.with_flag(flag, value)
        for _ in range(ROUNDS):
            yield candidate
            if self._lead(candidate) <= CLIMB:
                return
            if len(logs_by_setting(self.trials).get(self.leader, [])) < ROUNDS:
                yield self.leader
        logs, lead = logs_by_setting(self.trials), self._lead(candidate)
        if lead > CLIMB:
            error = assumed_spread(logs) * math.sqrt(1 / len(logs[candidate]) + 1 / len(logs[self.leader]))
            if lead > 2 * error:
                self.leader = candidate

    def _lead(self, candidate: Setting) -> float:
        """Return the logarithm of a setting's rate over the leader's; minus infinity if it has none."""
        logs = logs_by_setting(self.trials)
        if candidate not in logs or self.leader not in logs:
            return -math.inf
        return fmean(logs[candidate]) - fmean(logs[self.leader])
