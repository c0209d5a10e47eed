"""Estimates how far another host's monotonic clock is ahead of ours, from the shortest round trip (Cristian 1989)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

ROUND_TRIPS = 32
"""One takes as long as a packet and a wake-up of either runner; of so many some meet no queue."""


@dataclass(frozen=True, slots=True)
class Offset:
    """`ns` is their clock minus ours. The truth lies within `error_ns`, however unequal the two ways were."""

    ns: int
    error_ns: int

    def ours(self, theirs_ns: int) -> int:
        """Return a time of their clock in ours."""
        return theirs_ns - self.ns

    def theirs(self, ours_ns: int) -> int:
        """Return a time of our clock in theirs."""
        return ours_ns + self.ns

    def until(self, later: Offset) -> Offset:
        """Return this offset, whose error includes the drift of the clocks until a later one, and that one's error."""
        return Offset(self.ns, max(self.error_ns, abs(later.ns - self.ns) + later.error_ns))


def offset_of(round_trip: Callable[[], tuple[int, int, int]]) -> Offset:
    """Return the offset of the smallest of ROUND_TRIPS round trips.

    `round_trip` returns when it was sent and when its answer came, by our clock in ns, with the time between them that
    the other host's clock showed: (sent, theirs, received).
    """
    sent_ns, theirs_ns, received_ns = min(
        (round_trip() for _ in range(ROUND_TRIPS)), key=lambda trip: trip[2] - trip[0]
    )
    return Offset(theirs_ns - (sent_ns + received_ns) // 2, (received_ns - sent_ns + 1) // 2)
