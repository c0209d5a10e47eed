"""The part of the requested work that fits into a budget: laws for every budget, and cases a person would try."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.budget import LEAST_STEP_NS, MOST_REPEAT, Amount, lasting, latest_ns, range_ns, steady_ns, within

LEAST_KEPT = 6
"""Fewest kept observations that have an interval."""


@st.composite
def amounts(draw: st.DrawFn) -> Amount:
    repeat = draw(st.integers(1, 200))
    return Amount(draw(st.integers(1, 5000)), repeat, draw(st.integers(0, repeat - 1)))


times_ns = st.integers(1, 10**13)


@given(amounts(), times_ns, times_ns)
def test_the_most_that_fits_is_kept_of_what_was_asked(asked: Amount, batch_ns: int, budget_ns: int) -> None:
    got = within(asked, batch_ns, budget_ns)
    assert 1 <= got.number <= asked.number
    assert 1 <= got.repeat <= asked.repeat
    assert 0 <= got.skip <= asked.skip
    assert got.skip < got.repeat
    # The kept observations are enough for an interval, unless fewer were requested or fit into the longest time.
    is_enough = got.repeat - got.skip >= min(LEAST_KEPT, asked.repeat - asked.skip)
    assert is_enough or (got.repeat + 1) * batch_ns > latest_ns(budget_ns)
    assert got.repeat == 1 or got.batches * batch_ns <= latest_ns(budget_ns)
    is_least = got.number == 1 and got.repeat - got.skip <= LEAST_KEPT
    assert got.batches * batch_ns <= budget_ns or is_least
    if asked.batches * batch_ns <= budget_ns:
        assert got == asked
    # Observations are shortened to one batch before any is dropped, and neither more than the budget requires.
    assert got.repeat == asked.repeat or got.number == 1
    if got.number < asked.number:
        assert (got.number + 1) * asked.repeat * batch_ns > budget_ns
    if got.repeat < asked.repeat:
        assert (got.repeat + 1) * batch_ns > budget_ns


@given(amounts(), times_ns, times_ns, times_ns)
def test_a_larger_budget_never_gives_less(asked: Amount, batch_ns: int, one_ns: int, other_ns: int) -> None:
    less, more = (within(asked, batch_ns, budget_ns) for budget_ns in sorted((one_ns, other_ns)))
    assert less.number <= more.number
    assert min(less.repeat - less.skip, asked.repeat - asked.skip) <= more.repeat - more.skip


@pytest.mark.parametrize(
    ("asked", "batch_s", "budget_s", "got"),
    [
        (Amount(30, 20, 5), 0.02, 60, Amount(30, 20, 5)),
        (Amount(30, 20, 5), 0.02, 10, Amount(25, 20, 5)),
        (Amount(30, 20, 5), 1, 60, Amount(3, 20, 5)),
        (Amount(30, 20, 5), 5, 60, Amount(1, 12, 4)),
        (Amount(30, 20, 5), 7.5, 60, Amount(1, 8, 2)),
        (Amount(30, 20, 5), 30, 60, Amount(1, 4, 1)),
        (Amount(30, 20, 5), 8, 6, Amount(1, 2, 0)),
        (Amount(30, 20, 5), 61, 60, Amount(1, 1, 0)),
        (Amount(30, 3, 1), 61, 60, Amount(1, 1, 0)),
        (Amount(1, 9, 0), 10, 60, Amount(1, 6, 0)),
        (Amount(4, 9, 8), 1, 30, Amount(3, 9, 8)),
        (Amount(4, 9, 8), 5, 30, Amount(1, 6, 2)),
        (Amount(4, 9, 8), 31, 30, Amount(1, 1, 0)),
    ],
)
def test_cases(asked: Amount, batch_s: float, budget_s: float, got: Amount) -> None:
    assert within(asked, round(batch_s * 1e9), round(budget_s * 1e9)) == got


@pytest.mark.parametrize(
    ("warm_up_ns", "batch_ns"),
    [
        ([900_000, 30_000, 20_000], 20_000),
        ([20_000, 30_000, 40_000], 30_000),
        ([900_000], 900_000),
        ([900_000, 0, -3], 900_000),
        ([], None),
        ([0], None),
        ([-5, 0], None),
        ([900, 50, 40], LEAST_STEP_NS),
    ],
)
def test_how_long_a_batch_takes_by_the_warm_up(warm_up_ns: list[int], batch_ns: int | None) -> None:
    assert steady_ns(warm_up_ns) == batch_ns


def test_the_range_covers_fastest_and_slowest_warm_up() -> None:
    assert range_ns([[9_000, 5_000], [], [90_000, 7_000, 8_000]]) == (5_000, 7_000)
    assert range_ns([[], [0]]) == range_ns([]) == (None, None)


def test_kept_observations_last_at_least_so_long() -> None:
    asked = Amount(number=10, repeat=15, skip=5)
    for batch_ns, least_ns, repeat in (
        (1_000, 0, 15),
        (1_000, 100_000, 15),
        (1_000, 100_001, 16),
        (1_000, 10_000_000, 1005),
        (None, 10_000_000, 15),
        (1_000, 10**12, MOST_REPEAT),
    ):
        assert lasting(asked, batch_ns, least_ns) == Amount(10, repeat, 5)
    assert lasting(Amount(1, 20_000, 5), 1_000, 10**12).repeat == 20_000
