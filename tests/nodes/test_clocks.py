"""Another host's clock over an invented link: the planted offset is found, within the stated error."""

import random
from collections.abc import Callable

import pytest

from cotenant.nodes.clocks import Offset, offset_of

MS, US = 1_000_000, 1_000


def link(planted_ns: int, there_ns: int, back_ns: int, seed: int) -> Callable[[], tuple[int, int, int]]:
    """Round trips that take so long at least; nine of ten wait in queues, for up to 3 ms each way."""
    drawn, now_ns = random.Random(seed), 0

    def queue() -> int:
        return round(drawn.expovariate(1 / MS)) if drawn.random() < 0.7 else 0

    def round_trip() -> tuple[int, int, int]:
        nonlocal now_ns
        sent_ns = now_ns
        arrived_ns = sent_ns + there_ns + queue()
        now_ns = arrived_ns + back_ns + queue()
        return sent_ns, arrived_ns + planted_ns, now_ns

    return round_trip


@pytest.mark.parametrize("planted_ns", [5 * MS, -5 * MS, 40 * 3600 * 10**9])
def test_an_offset_is_found_to_a_tenth_of_a_millisecond(planted_ns: int) -> None:
    for seed in range(50):
        found = offset_of(link(planted_ns, 60 * US, 90 * US, seed))
        assert abs(found.ns - planted_ns) < 100 * US
        assert abs(found.ns - planted_ns) <= found.error_ns < 3 * MS


def test_ways_as_unequal_as_can_be_stay_within_the_error() -> None:
    for there_ns, back_ns in ((200 * US, 0), (0, 200 * US)):
        found = offset_of(link(5 * MS, there_ns, back_ns, 1))
        assert 90 * US < abs(found.ns - 5 * MS) <= found.error_ns < 150 * US


def test_times_go_both_ways_and_a_drift_is_in_the_error() -> None:
    offset = Offset(5 * MS, 40 * US)
    assert (offset.theirs(7 * MS), offset.ours(12 * MS)) == (12 * MS, 7 * MS)
    # At the end the truth may be 80 microseconds away; at the beginning it was no more than 40.
    assert offset.until(Offset(5 * MS - 30 * US, 50 * US)) == Offset(5 * MS, 80 * US)
    assert offset.until(Offset(5 * MS - 10 * US, 20 * US)) == offset
