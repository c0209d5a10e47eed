"""How many users a machine carries: estimates of so many of them at once, and the answer with its evidence. Pure.

All values are logarithms of which more is better: of the share that a user keeps of its rate alone, of its rate, or of
the inverse of a step's time. Users of one number are equals, so that they share one spread.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, variance
from typing import Literal, NamedTuple

from cotenant.stats.kept import t_975

STARVED = 2.0
"""A user that lies so many half-widths below a requirement lies there whoever was chosen for being the worst."""

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
    half: float | None = None
    mean_half: float | None = None
    spread: float | None = None
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
    if not repeated:
        return {users: CrowdEstimate(users, len(of), means_of(of)) for users, of in rows.items()}
    freedoms = [len(of) - 1 for of in repeated]
    of_users = [fmean(variance(row[user] for row in of) for user in of[0]) for of in repeated]
    of_means = [variance(fmean(row.values()) for row in of) for of in repeated]
    spread, mean_spread = (math.sqrt(fmean(variances, freedoms)) for variances in (of_users, of_means))
    made = {}
    for users, of in rows.items():
        scale = t_975(sum(freedoms)) / math.sqrt(len(of))
        made[users] = CrowdEstimate(users, len(of), means_of(of), scale * spread, scale * mean_spread, spread)
    return made


def means_of(rows: Sequence[Values]) -> dict[int, float]:
    """Return the mean value of each user over rounds, or launches, that all have the same users."""
    return {user: fmean(row[user] for row in rows) for user in sorted(rows[0])}


# The answer

NOISE, NOBODY = "noise", "nobody"
"""Why there is no answer: noise leaves it open, or not even one user meets its requirement."""


@dataclass(frozen=True, slots=True)
class AloneUse:
    """A user alone: its rate, its use of the machine, and the processors of all slices together.

    A value that nobody counts is None.
    """

    rate: float
    unit: str
    busy: float | None
    """Processors that it keeps busy."""
    processors: int
    peak_bytes: int | None
    processes: int | None
    device_bytes: int | None
    audited: bool = True
    """Whether our loop watched some of its steps."""


class CrowdUse(NamedTuple):
    """How a launch ended: a `flaw` in a sentence where its numbers are none, whether memory did not suffice, and how
    many processors all its users kept busy together, where that is counted."""

    flaw: str = ""
    out_of_memory: bool = False
    busy: float | None = None


@dataclass(frozen=True, slots=True)
class BesidePressure:
    """The other users, as one has a neighbour of ours in its place that takes all it can of a resource."""

    resource: str
    estimate: CrowdEstimate
    standing: Standing


Binding = Literal["memory", "processors", ""]


@dataclass(frozen=True, slots=True)
class Carried:
    """How many users a machine carries, each with a requirement; `users` is 0 of none.

    `settled` if launches of their own have confirmed it, and that one `step` more is too many; else `why` not, and
    `missing_s` is about how long it would take, None if nobody knows.
    """

    label: str
    requirement: Requirement
    users: int = 0
    step: int = 1
    settled: bool = False
    why: str = ""
    missing_s: float | None = None
    alone: AloneUse | None = None
    memory_users: int | None = None
    """The most users that memory holds; None if no slice holds memory, or nobody counts it."""
    memory_bytes: int | None = None
    """The memory of each of them in its slice."""
    by_memory: bool = False
    """Whether memory alone does not hold more of them."""
    searched: tuple[CrowdEstimate, ...] = ()
    """An estimate for each number of users, by rounds of the search."""
    confirmed: Mapping[int, CrowdEstimate] = field(default_factory=dict)
    """An estimate for each number of users, by launches of its own."""
    pressures: tuple[BesidePressure, ...] = ()
    untried: str = ""
    """Why no neighbour of ours was tried; empty if one was."""
    binding: Binding = ""
    """The resource of which there is no more; empty if nobody knows."""
    busy: float | None = None
    """Processors that they kept busy together."""
    share: str = ""
    """How users share a device, where somebody says so."""
    seconds: float = 0.0
