"""Finds the number of users that a machine carries: decides which launches to make, and judges them.

`SuiteLaunches` makes them: this module starts nothing.
"""

from __future__ import annotations

import bisect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from cotenant.launch.design.designs import Searcher
from cotenant.stats.capacity import (
    NOBODY,
    NOISE,
    AloneUse,
    BesidePressure,
    Carried,
    CrowdUse,
    Requirement,
    Standing,
    estimates_of,
    means_of,
)
from cotenant.stats.crowd_search import CONFIRMED, Confirming, CrowdSearch, SteadyCrowd
from cotenant.text import many

if TYPE_CHECKING:
    from cotenant.launch.crowd_launches import SuiteLaunches

PRESSURES = ("cpu", "dram")
SEARCH_PART, LAUNCH_PART = 0.35, 0.07
"""Shares of the budget for measuring in the search, and in each confirming launch."""
CONFIRMING_ROUNDS = 12
ROOM = 1.5
"""A search launches this many times the users that processors seem to carry."""
FIRST_MOST, MOST_USERS = 16, 512
"""The most users in each slice of the first launch of a search, and the most that are ever tried."""
BUSY = 0.9
"""Processors are full if they are busy for this share of the time."""


class NoAnswerError(Exception):
    """There is no answer; the message is the reason."""


@dataclass(slots=True)
class CapacityRun:
    """Finds how many users reach a requirement within a budget of seconds."""

    launches: SuiteLaunches
    label: str
    requirement: Requirement
    budget_s: float
    most: int | None = None
    """The most users to try, if the user of the command set it."""
    now_s: Callable[[], float] = time.monotonic
    _found: Carried = field(init=False)
    _until_s: float = field(default=0.0, init=False)
    _last_s: dict[int, float] = field(default_factory=dict, init=False)
    """Seconds that the last launch with a number of users took."""

    def __post_init__(self) -> None:
        self._found = Carried(self.label, self.requirement, step=self.launches.step)

    def run(self) -> Carried:
        """Make the launches; return the answer."""
        began_s = self.now_s()
        self._until_s = began_s + self.budget_s
        try:
            self._find()
        except NoAnswerError as ended:
            self._note(why=str(ended))
        self._note(seconds=self.now_s() - began_s)
        return self._found

    def _note(self, **changes: Any) -> None:
        self._found = replace(self._found, **changes)

    def _find(self) -> None:
        alone = self.launches.alone()
        if isinstance(alone, str):
            raise NoAnswerError(alone)
        memory_users = self._most(alone)
        self._note(alone=alone, memory_users=memory_users)
        limit = self._allowed if memory_users is None else min(self._allowed, memory_users)
        if not limit:
            raise NoAnswerError(
                "Memory does not hold a single user." if memory_users == 0 else "No number of users is left to try."
            )
        search, limit = self._search(alone, limit)
        self._note(searched=(*search.estimates,))
        self._answer(*self._confirm(search, limit), alone)
        if self._found.settled:
            self._press()

    @property
    def _allowed(self) -> int:
        """The most users to try, however many memory holds: a multiple of `step`."""
        step = self.launches.step
        return min(self.most or MOST_USERS, MOST_USERS) // step * step

    def _most(self, alone: AloneUse) -> int | None:
        """Return the most users that memory holds, each with the peak of one alone; None if that is unknown."""
        if alone.peak_bytes is None or not self.launches.holds_memory():
            self.launches.tell("memory is not limited here: how many users it carries is unknown")
            return None
        numbers = range(self.launches.step, MOST_USERS + 1, self.launches.step)
        held = bisect.bisect_left(numbers, True, key=lambda users: self.launches.holds(users, alone) is None)
        users = held * self.launches.step
        self.launches.tell(f"memory holds {many(users, 'user')}")
        return users

    def _residents(self, alone: AloneUse) -> int:
        """Return the number of users to launch first: more than processors seem to carry."""
        step, least = self.launches.step, self.requirement.least
        share = {"keep": least, "rate": least / alone.rate, "p95": 1 / FIRST_MOST}[self.requirement.kind]
        users = ROOM * alone.processors / (max(alone.busy or 0.0, 0.01) * share)
        return max(2, min(FIRST_MOST, math.ceil(users / step))) * step

    def _search(self, alone: AloneUse, limit: int) -> tuple[CrowdSearch, int]:
        """Return the search, and the most users to try: fewer than `limit` if memory did not hold as many."""
        search = CrowdSearch(self.requirement, 0, self.launches.step, self._held)
        residents, left_s = min(limit, self._residents(alone)), SEARCH_PART * self.budget_s
        while True:
            search.most = residents
            if search.next_users() is None:
                if search.held < residents or residents >= limit:
                    return search, limit
                residents = min(limit, 2 * residents)
                continue
            began_s = self.now_s()
            self.launches.tell(f"searching: one launch of {many(residents, 'user')}, of which some are awake at a time")
            use = self._launched(residents, search, left_s)
            left_s -= self.now_s() - began_s
            if use.out_of_memory:
                limit = residents = residents - self.launches.step
                if not limit:
                    raise NoAnswerError("Memory does not hold a single user.")
            elif search.next_users() is not None:
                return search, limit
            if left_s <= 0:
                return search, limit

    @property
    def _held(self) -> int:
        """The number of users known without a launch: a single user keeps its whole rate."""
        return 1 if self.requirement.kind == "keep" and self.launches.step == 1 else 0

    def _confirm(self, search: CrowdSearch, limit: int) -> tuple[Confirming, dict[int, CrowdUse]]:
        confirming = Confirming(self.requirement, search.held, limit, self.launches.step, self._held)
        uses: dict[int, CrowdUse] = {}
        while (users := confirming.next_users()) is not None and self._has_time_for(users):
            if users not in confirming.launches:
                self.launches.tell(f"confirming: {CONFIRMED} launches of {many(users, 'user')}")
            steady = SteadyCrowd(users, CONFIRMING_ROUNDS)
            uses[users] = self._launched(users, steady, LAUNCH_PART * self.budget_s)
            if uses[users].out_of_memory:
                confirming.limit_to(users - self.launches.step)
            else:
                confirming.take(users, means_of(steady.rounds))
        return confirming, uses

    def _has_time_for(self, users: int) -> bool:
        return self.now_s() + self._last_s.get(users, LAUNCH_PART * self.budget_s) <= self._until_s

    def _launched(self, users: int, crowd: Searcher, budget_s: float, pressure: str = "") -> CrowdUse:
        began_s = self.now_s()
        use = self.launches.crowd(users, crowd, budget_s, pressure)
        self._last_s[users] = self.now_s() - began_s
        if use.flaw:
            raise NoAnswerError(use.flaw)
        if not use.out_of_memory and not crowd.rounds:
            raise NoAnswerError(f"No round of {many(users, 'user')} came to its end within {budget_s:.0f} s: --budget.")
        return use

    def _answer(self, confirming: Confirming, uses: dict[int, CrowdUse], alone: AloneUse) -> None:
        users, why, missing_s = confirming.users, "", None
        # A single user that meets the requirement without a search has only been launched alone.
        busy = alone.busy if users == 1 and users not in uses else uses.get(users, CrowdUse()).busy
        by_memory = confirming.has_tried_most and users < self._allowed
        by_processors = busy is not None and busy >= BUSY * alone.processors
        if not confirming.settled:
            open_ = users or confirming.standing(confirming.following) is not Standing.FAILED
            launches = confirming.missing_launches()
            why = NOISE if open_ else NOBODY
            if open_ and launches is not None:
                missing_s = launches * fmean(self._last_s.values())
        self._note(
            users=users,
            settled=confirming.settled,
            why=why,
            missing_s=missing_s,
            by_memory=by_memory,
            confirmed=confirming.estimates,
            memory_bytes=self.launches.holds(users, alone) if users else None,
            busy=busy,
            binding="memory" if by_memory else "processors" if by_processors else "",
        )

    def _press(self) -> None:
        """Measure the other users beside each neighbour of ours, which takes the place of one user."""
        users = self._found.users
        if not self.launches.holds_memory():
            self._note(untried="memory is not held here, and a neighbour of ours could take all of it")
        elif users < 2:
            self._note(untried="a single user has no neighbour")
        else:
            untried = []
            for resource in PRESSURES:
                try:
                    self._press_on(resource, users)
                except NoAnswerError as ended:
                    untried.append(f"{resource}: {ended}")
            self._note(untried="; ".join(untried))

    def _press_on(self, resource: str, users: int) -> None:
        if not self._has_time_for(users):
            raise NoAnswerError("the budget was spent")
        self.launches.tell(f"beside pressure on {resource} in one user's slice")
        steady = SteadyCrowd(users, CONFIRMING_ROUNDS, counted=users - 1)
        if self._launched(users, steady, LAUNCH_PART * self.budget_s, resource).out_of_memory:
            raise NoAnswerError("memory did not suffice")
        estimate = estimates_of({users: steady.rounds})[users]
        pressed = BesidePressure(resource, estimate, estimate.standing(self.requirement.log))
        self._note(pressures=(*self._found.pressures, pressed))
