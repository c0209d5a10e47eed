"""How many users a machine carries: estimates of so many of them at once. Pure.

All values are logarithms of which more is better: of the share that a user keeps of its rate alone, of its rate, or of
the inverse of a step's time. Users of one number are equals, so that they share one spread.
"""

from __future__ import annotations

import bisect
import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Literal

from cotenant.stats.kept import t_975

STARVED = 2.0
"""A user that lies so many half-widths below a requirement lies there whoever was chosen for being the worst."""
UNLIKELY = 0.05

Values = Mapping[int, float]
"""The value of each user in one round, or launch."""
Kind = Literal["keep", "rate", "p95"]


class Standing(enum.StrEnum):
    """Where users stand to a requirement: beyond doubt above, beyond doubt below, or neither."""

    HELD = "held"
    FAILED = "failed"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Requirement:
    """The least that each user has to have: a share of its rate alone, items a second, or a p95 in seconds."""

    kind: Kind
    least: float

    @property
    def log(self) -> float:
        """The value that users have to reach."""
        return -math.log(self.least) if self.kind == "p95" else math.log(self.least)

    def shown(self, log: float) -> float:
        """Return a value in the unit of the requirement."""
        return math.exp(-log if self.kind == "p95" else log)


@dataclass(frozen=True, slots=True)
class CrowdEstimate:
    """So many `users` at once, over `n` rounds of a launch, or launches: the mean value of each of them.

    `half` is half the width of each one's 95 % interval, `mean_half` that of all users' mean; None of too few.
    """

    users: int
    n: int
    means: Mapping[int, float]
    half: float | None
    mean_half: float | None
    spread: float | None
    """Standard deviation of a user's value between rounds, or launches."""

    @property
    def worst(self) -> float:
        """The mean of the user that has least."""
        return min(self.means.values())

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the user that has least."""
        return None if self.half is None else (self.worst - self.half, self.worst + self.half)

    def standing(self, least: float) -> Standing:
        """Return where the users stand: `held` if the lower limit of each is at least so much.

        They have failed where the upper limit of all users' mean is below it, or one of them is far below.
        """
        if self.half is None or self.mean_half is None:
            return Standing.UNCLEAR
        if self.worst - self.half >= least:
            return Standing.HELD
        if fmean(self.means.values()) + self.mean_half < least or self.worst + STARVED * self.half < least:
            return Standing.FAILED
        return Standing.UNCLEAR


def estimates_of(rows: Mapping[int, Sequence[Values]]) -> dict[int, CrowdEstimate]:
    """Return an estimate for each number of users, of its rounds or launches; all numbers share their spreads.

    The spreads have as many degrees of freedom as rounds, or launches, give: users of one of them err together.
    """
    repeated = [of for of in rows.values() if len(of) > 1]
    freedoms = [len(of) - 1 for of in repeated]
    freedom = sum(freedoms)
    of_users = _pooled([fmean(variance(row[user] for row in of) for user in of[0]) for of in repeated], freedoms)
    of_means = _pooled([variance(fmean(row.values()) for row in of) for of in repeated], freedoms)
    made = {}
    for users, of in rows.items():
        scale = t_975(freedom) / math.sqrt(len(of)) if freedom else None
        half, mean_half = (None, None) if scale is None else (scale * of_users, scale * of_means)
        made[users] = CrowdEstimate(users, len(of), means_of(of), half, mean_half, of_users if freedom else None)
    return made


def means_of(rows: Sequence[Values]) -> dict[int, float]:
    """Return the mean value of each user over rounds, or launches, that all have the same users."""
    return {user: fmean(row[user] for row in rows) for user in sorted(rows[0])}


def _pooled(variances: Sequence[float], freedoms: Sequence[int]) -> float:
    return math.sqrt(fmean(variances, freedoms)) if freedoms else 0.0


def enrolled(users: int, active: float) -> int:
    """Return the most people of whom more than so many are active at once with a chance of 5 % at the most.

    Each is active by itself with the chance `active`: the count is binomial, which is a model. Raises ValueError for a
    chance that is none.
    """
    if not 0 < active <= 1:
        raise ValueError(f"{active} is no chance to be active")
    from scipy.stats import binom  # takes a second to import, and few ask for it

    # Of users / active people as many are active at one moment out of two.
    people = range(users, math.ceil(users / active) + 1)
    return people[bisect.bisect_right(people, UNLIKELY, key=lambda count: binom.sf(users, count, active)) - 1]
