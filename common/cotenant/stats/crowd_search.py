"""The number of users to try next: a search by rounds of one launch, and its confirmation by launches. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from cotenant.stats.capacity import CrowdEstimate, Requirement, Standing, Values, estimates_of
from cotenant.stats.kept import repeats_needed

LEAST_ROUNDS, MOST_ROUNDS = 4, 30
"""Rounds of a search before its first verdict on a number of users, and rounds after which the nearer side is taken."""
CONFIRMED = 3
"""Launches of its own that a number of users needs to be an answer."""
MOST_LAUNCHES = 12
MOST_MISSING = 200
"""An answer that needs more launches is not settled by more of the same."""


@dataclass(eq=False)
class CrowdSearch:
    """Finds the number of users that are carried, by rounds of 1, 2, 4, ... users at once, then of numbers between.

    Numbers are tried in steps of `step` users, up to `most`. `least` users are carried from the outset: a single one
    keeps its whole rate.
    """

    requirement: Requirement
    most: int
    step: int = 1
    least: int = 0
    rounds: dict[int, list[Values]] = field(default_factory=dict)

    def take(self, users: int, values: Values) -> None:
        """Take a round of `users` users; it does not count if a user has no value."""
        if len(values) == users:
            self.rounds.setdefault(users, []).append(values)

    def next_users(self) -> int | None:
        """Return the number of users in the next round; None if the answer is known."""
        held, failed = self.held, self.failed
        if failed is None:
            return min(self.most, max(self.step, 2 * held)) if held < self.most else None
        steps = (failed - held) // self.step
        return held + steps // 2 * self.step if steps > 1 else None

    def estimate(self, users: int) -> CrowdEstimate:
        """Return the estimate for a tried number of users."""
        return estimates_of({users: self.rounds[users]})[users]

    @property
    def estimates(self) -> list[CrowdEstimate]:
        """An estimate for each tried number of users, in their order."""
        return [self.estimate(users) for users in sorted(self.rounds)]

    @property
    def failed(self) -> int | None:
        """The least number of users that fails the requirement; None if none does."""
        return min((users for users in self.rounds if self._standing(users) is Standing.FAILED), default=None)

    @property
    def held(self) -> int:
        """The largest number of users, below the failed ones, of which each reaches the requirement."""
        below = self.failed or math.inf
        tried = (users for users in self.rounds if users < below and self._standing(users) is Standing.HELD)
        return max(tried, default=min(self.least, self.most))

    def _standing(self, users: int) -> Standing:
        rounds = len(self.rounds[users])
        if rounds < LEAST_ROUNDS:
            return Standing.UNCLEAR
        estimate = self.estimate(users)
        standing = estimate.standing(self.requirement.log)
        if standing is Standing.UNCLEAR and rounds >= MOST_ROUNDS:
            return Standing.HELD if estimate.worst >= self.requirement.log else Standing.FAILED
        return standing


class SteadyCrowd:
    """Has the same number of users in each of `rounds` rounds; only the first `counted` users are evaluated."""

    def __init__(self, users: int, rounds: int, counted: int | None = None) -> None:
        self._users, self._most, self._counted = users, rounds, users if counted is None else counted
        self.rounds: list[Values] = []

    def take(self, users: int, values: Values) -> None:
        """Take a round in which every counted user has a value."""
        counted = {user: value for user, value in values.items() if user < self._counted}
        if len(counted) == self._counted:
            self.rounds.append(counted)

    def next_users(self) -> int | None:
        """Return the number of users in the next round; None after the last."""
        return self._users if len(self.rounds) < self._most else None


@dataclass(eq=False)
class Confirming:
    """Confirms the number of users that are carried: launches of K users, and of K + `step`, by turns.

    `users` is K, first a guess. If launches contradict it K moves, and if they leave it open more of them follow.
    `most`, `step` and `least` are as for a search.
    """

    requirement: Requirement
    users: int
    most: int
    step: int = 1
    least: int = 0
    launches: dict[int, list[Values]] = field(default_factory=dict)
    _last: int = field(default=0, init=False)

    def take(self, users: int, values: Values) -> None:
        """Take a launch: the mean value of each of its users."""
        self.launches.setdefault(users, []).append(values)
        self._last = users

    def limit_to(self, most: int) -> None:
        """Go on with at most `most` users: memory has held no more."""
        self.most = most
        self.launches = {users: launches for users, launches in self.launches.items() if users <= most}
        self.users = min(self.users, most)

    @property
    def estimates(self) -> dict[int, CrowdEstimate]:
        """An estimate for each launched number of users."""
        return estimates_of({users: self.launches[users] for users in sorted(self.launches)})

    def next_users(self) -> int | None:
        """Return the number of users of the next launch; None if it is settled, or cannot be."""
        seen = {self.users}
        while True:
            pair = self._to_launch()
            if lacking := [users for users in pair if self._count(users) < CONFIRMED]:
                return self._in_turn(lacking)
            if (moved := self._moved()) in seen:
                unclear = [users for users in pair if self.standing(users) is Standing.UNCLEAR]
                open_ = [users for users in unclear if self._count(users) < MOST_LAUNCHES]
                return self._in_turn(open_) if open_ and moved == self.users else None
            self.users = moved
            seen.add(moved)

    def standing(self, users: int) -> Standing:
        """Return the standing of this number of users."""
        if users <= self.least:
            return Standing.HELD
        if users > self.most:
            return Standing.FAILED
        estimate = self.estimates.get(users)
        return Standing.UNCLEAR if estimate is None else estimate.standing(self.requirement.log)

    @property
    def following(self) -> int:
        """The next larger number of users."""
        return self.users + self.step

    @property
    def has_tried_most(self) -> bool:
        """True if the next larger number of users exceeds the most allowed."""
        return self.following > self.most

    @property
    def settled(self) -> bool:
        """True if launches of their own show that K users are carried, and that K + `step` are not."""
        confirmed = all(self._count(users) >= CONFIRMED for users in self._to_launch())
        held = self.users > 0 and self.standing(self.users) is Standing.HELD
        return confirmed and held and self.standing(self.following) is Standing.FAILED

    def missing_launches(self) -> int | None:
        """Return the approximate number of further launches that would settle it at this spread; None if unknown."""
        missing = 0
        for users in self._to_launch():
            estimate, have = self.estimates.get(users), self._count(users)
            needed: int | None = CONFIRMED
            if estimate is not None and self.standing(users) is Standing.UNCLEAR:
                if estimate.spread is None:
                    return None
                room = abs(estimate.worst - self.requirement.log)
                needed = repeats_needed(estimate.spread, room, max(CONFIRMED, have + 1), MOST_MISSING, sides=2)
            if needed is None:
                return None
            missing += max(0, needed - have)
        return missing

    def _to_launch(self) -> list[int]:
        """Return K and K + `step`, but only numbers that are neither carried anyway nor above the most allowed."""
        return [users for users in (self.users, self.following) if self.least < users <= self.most]

    def _count(self, users: int) -> int:
        return len(self.launches.get(users, ()))

    def _in_turn(self, candidates: Sequence[int]) -> int:
        """Return the candidate with fewer launches; of equal ones the last launched, so that they go A B B A."""
        return min(candidates, key=lambda users: (self._count(users), users != self._last, users))

    def _moved(self) -> int:
        """Return the K that the launches indicate."""
        if self.standing(self.users) is Standing.FAILED:
            return max(0, self.users - self.step)
        if self.standing(self.users) is Standing.HELD and self.standing(self.following) is Standing.HELD:
            return self.following
        return self.users
