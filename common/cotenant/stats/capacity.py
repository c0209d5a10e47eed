"""The number of users that a machine carries: estimates of crowds, and the answer with its evidence. Pure.

All values are logarithms, and more is better: of the share that a user keeps of its rate alone, of its rate, or of the
inverse of a step's time. The users of a crowd are equals, so they share one spread.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, variance
from typing import Literal, NamedTuple

from cotenant.stats.quantiles import t_975

STARVED = 2.0
"""A user this many half-widths below a requirement fails it, even though it was chosen as the worst."""

Values = Mapping[int, float]
"""The value of each user in one round, or launch."""
Kind = Literal["keep", "rate", "p95"]


class Standing(enum.StrEnum):
    """The standing of users against a requirement: beyond doubt above, beyond doubt below, or neither."""

    HELD = "held"
    FAILED = "failed"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Requirement:
    """The least that each user needs: a share of its rate alone, items a second, or a p95 in seconds."""

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
    """The mean value of each of `users` users at once, over `n` rounds of a launch, or over `n` launches.

    `half` is half the width of each mean's 95 % interval, `mean_half` of all users' mean; None for too few rounds.
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
        """The mean of the worst user."""
        return min(self.means.values())

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the worst user."""
        return None if self.half is None else (self.worst - self.half, self.worst + self.half)

    def standing(self, least: float) -> Standing:
        """Return the users' standing: `held` if the lower limit of each is at least `least`.

        They have failed if the upper limit of all users' mean is below it, or one of them is far below.
        """
        if self.half is None or self.mean_half is None:
            return Standing.UNCLEAR
        if self.worst - self.half >= least:
            return Standing.HELD
        if fmean(self.means.values()) + self.mean_half < least or self.worst + STARVED * self.half < least:
            return Standing.FAILED
        return Standing.UNCLEAR


def estimates_of(rows: Mapping[int, Sequence[Values]]) -> dict[int, CrowdEstimate]:
    """Return an estimate for each number of users, from its rounds or launches; all numbers share their spreads.

    The spreads have the degrees of freedom of the rounds, or launches: users of one round err together.
    """
    repeated = [rounds for rounds in rows.values() if len(rounds) > 1]
    if not repeated:
        return {users: CrowdEstimate(users, len(rounds), means_of(rounds)) for users, rounds in rows.items()}
    freedoms = [len(rounds) - 1 for rounds in repeated]
    of_users = [fmean(variance(row[user] for row in rounds) for user in rounds[0]) for rounds in repeated]
    of_means = [variance(fmean(row.values()) for row in rounds) for rounds in repeated]
    spread, mean_spread = (math.sqrt(fmean(variances, freedoms)) for variances in (of_users, of_means))
    made = {}
    for users, rounds in rows.items():
        scale = t_975(sum(freedoms)) / math.sqrt(len(rounds))
        made[users] = CrowdEstimate(users, len(rounds), means_of(rounds), scale * spread, scale * mean_spread, spread)
    return made


def means_of(rows: Sequence[Values]) -> dict[int, float]:
    """Return the mean value of each user over rounds, or launches, that all have the same users."""
    return {user: fmean(row[user] for row in rows) for user in sorted(rows[0])}


# The answer

NOISE, NOBODY = "noise", "nobody"
"""The reasons for no answer: noise leaves it open, or not even one user meets its requirement."""


@dataclass(frozen=True, slots=True)
class AloneUse:
    """A user alone: its rate, its use of the machine, and the processors of all slices together.

    A value that is not counted is None.
    """

    rate: float
    unit: str
    busy: float | None
    """The processors that it keeps busy."""
    processors: int
    peak_bytes: int | None
    processes: int | None
    device_bytes: int | None
    audited: bool = True
    """True if our loop watched some of its steps."""


class CrowdUse(NamedTuple):
    """The end of a launch: a `flaw` in a sentence if its numbers do not count, whether memory did not suffice, and the
    processors that all its users kept busy together, if counted."""

    flaw: str = ""
    out_of_memory: bool = False
    busy: float | None = None


@dataclass(frozen=True, slots=True)
class BesidePressure:
    """The other users while a pressure neighbour, in the place of one user, takes all it can of a resource."""

    resource: str
    estimate: CrowdEstimate
    standing: Standing


Binding = Literal["memory", "processors", ""]


@dataclass(frozen=True, slots=True)
class Carried:
    """The number of users that a machine carries, each with a requirement; `users` is 0 for none.

    `settled`: launches of their own have confirmed it, and that one `step` more is too many. Otherwise `why` has the
    reason, and `missing_s` the approximate time that it would take, None if unknown.
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
    """The most users that memory holds; None if slices do not limit memory, or its use is not counted."""
    memory_bytes: int | None = None
    """The memory of each user in its slice."""
    by_memory: bool = False
    """True if memory alone excludes more users."""
    searched: tuple[CrowdEstimate, ...] = ()
    """An estimate for each number of users, by rounds of the search."""
    confirmed: Mapping[int, CrowdEstimate] = field(default_factory=dict)
    """An estimate for each number of users, by launches of its own."""
    pressures: tuple[BesidePressure, ...] = ()
    untried: str = ""
    """The reason if no pressure neighbour was tried; empty if one was."""
    binding: Binding = ""
    """The exhausted resource; empty if it is unknown."""
    busy: float | None = None
    """Processors that the users kept busy together."""
    share: str = ""
    """The way that users share a device, if one was requested."""
    seconds: float = 0.0
