"""The part of the requested work that fits into a budget of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cotenant.stats.describe import INTERVAL_OBSERVATIONS

MOST_REPEAT = 10_000
"""The most observations that `--at-least` asks for: a record keeps them all."""
GRACE_NS = 10_000_000_000
"""The least time by which a launch may exceed its budget; it ends with its current observation."""
LEAST_STEP_NS = 1_000
"""A clock read takes some 50 ns: a step reported as shorter than this was not timed."""


@dataclass(frozen=True, slots=True)
class Amount:
    """`repeat` observations of `number` batches each, of which the first `skip` are not kept."""

    number: int
    """Batches of an observation."""
    repeat: int
    """Observations."""
    skip: int
    """The number of them, from the first, that are not kept."""

    @property
    def batches(self) -> int:
        return self.number * self.repeat


def latest_ns(budget_ns: int) -> int:
    """Return the time after which a launch with this budget ends with the observations it has."""
    return max(2 * budget_ns, budget_ns + GRACE_NS)


def within(requested: Amount, batch_ns: int, budget_ns: int) -> Amount:
    """Return the amount that fits into `budget_ns` if a batch takes `batch_ns`: never more than was requested.

    `number` is lowered first, so that as many observations are kept as requested; `repeat` only if single batches are
    still too many, and then at most a third of the observations is not kept. A rate without an interval is worth
    little: the requested observations, as far as an interval needs them, may last until `latest_ns`.
    """
    batches = max(1, budget_ns // batch_ns)
    number = min(requested.number, max(1, batches // requested.repeat))
    repeat = min(requested.repeat, batches // number)
    skip = requested.skip if repeat == requested.repeat else min(requested.skip, repeat // 3)
    least = min(INTERVAL_OBSERVATIONS, requested.repeat - requested.skip)
    if repeat - skip < least:
        repeat = max(repeat, min(min(requested.skip, least // 2) + least, latest_ns(budget_ns) // (number * batch_ns)))
        skip = min(requested.skip, repeat // 3)
    return Amount(number, repeat, skip)


def lasting(requested: Amount, batch_ns: int | None, least_ns: int) -> Amount:
    """Return `requested` with enough more observations that the kept ones last `least_ns`.

    A batch takes `batch_ns`; if that is unknown, the amount stays as requested. `repeat` is at most MOST_REPEAT, unless
    more was requested.
    """
    if batch_ns is None:
        return requested
    kept_count = -(-least_ns // (requested.number * batch_ns))
    return replace(requested, repeat=max(requested.repeat, min(requested.skip + kept_count, MOST_REPEAT)))


def steady_ns(warm_up_ns: Sequence[int]) -> int | None:
    """Return the time of a batch, by the times of the warm-up steps; None if they show nothing.

    The first step also compiles, and is watched: it counts only if there is no other. Of the others the shortest
    counts: anything else that goes on while tenants get ready only makes a step longer.
    """
    for steps_ns in (warm_up_ns[1:], warm_up_ns[:1]):
        if timed := [step_ns for step_ns in steps_ns if step_ns > 0]:
            return max(LEAST_STEP_NS, min(timed))
    return None


def range_ns(warm_ups_ns: Iterable[Sequence[int]]) -> tuple[int | None, int | None]:
    """Return the time of a batch in the fastest and in the slowest of all processes; None if no process shows it."""
    known_ns = [batch_ns for steps_ns in warm_ups_ns if (batch_ns := steady_ns(steps_ns)) is not None]
    return min(known_ns, default=None), max(known_ns, default=None)
