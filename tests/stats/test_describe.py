"""A description against independent calculations."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as independent

from cotenant.stats.describe import describe, median_interval_ranks, relative_half_width

rates = st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=60)


def chance_inside(rank: int, n: int) -> float:
    """Return P(X(rank) <= median <= X(n + 1 - rank)): `rank` to n - `rank` of n observations are below the median."""
    return float(independent.binom.pmf(np.arange(rank, n - rank + 1), n, 0.5).sum())


def test_median_ranks_match_the_published_tables() -> None:
    # Ranks from published tables of the sign test's interval.
    tables = {0: None, 1: None, 5: None, 6: (1, 6), 8: (1, 8), 9: (2, 8), 20: (6, 15), 100: (40, 61)}
    assert {n: median_interval_ranks(n) for n in tables} == tables
    for n in (*range(6, 300), 1000, 3001):
        low, high = median_interval_ranks(n)
        assert low + high == n + 1
        assert chance_inside(low, n) >= 0.95 > chance_inside(low + 1, n)


@given(rates)
def test_a_description_agrees_with_others(values: list[float]) -> None:
    found = describe([1.0] * len(values), [1 / value for value in values])
    made = sorted(1.0 / (1 / value) for value in values)
    median = statistics.median(made)
    assert found.n == len(made)
    assert found.median == pytest.approx(median)
    assert (found.best, found.max, found.min) == (made[-1], made[-1], made[0])
    assert found.mean == pytest.approx(statistics.fmean(made))
    assert found.sd == pytest.approx(statistics.pstdev(made), abs=1e-6 * made[-1])
    mad = independent.median_abs_deviation(made)
    assert found.robust_spread == pytest.approx(1.4826 * mad / median)
    assert found.iqr == pytest.approx(independent.iqr(made))
    slow = sorted(1 / value for value in values)
    place = 0.95 * (len(slow) - 1)
    low, high = slow[math.floor(place)], slow[math.ceil(place)]
    assert found.p95_s == pytest.approx(low + (high - low) * (place - math.floor(place)))


@given(rates)
def test_the_interval_holds_its_median_and_is_of_observed_rates(values: list[float]) -> None:
    found = describe(values, [1.0] * len(values))
    if found.interval is None:
        assert len(values) < 6
        return
    low, high = found.interval
    assert found.min <= low <= found.median <= high <= found.max
    assert {low, high} <= set(values)


def test_descriptions_use_both_items_and_seconds() -> None:
    three = describe([100, 300, 200], [1.0, 2.0, 4.0])
    assert (three.min, three.median, three.max) == (50, 100, 150)
    twenty = describe([1.0 + 9 * k % 20 for k in range(20)], [1.0] * 20)
    assert (twenty.interval, twenty.median) == ((6, 15), 10.5)
    # The distances |rate - 10.5| are 0.5, 0.5, 1.5, 1.5 ... 9.5, with the median 5.
    assert twenty.robust_spread == pytest.approx(1.4826 * 5 / 10.5)


@pytest.mark.parametrize(
    ("items", "seconds"),
    [([], []), ([1], []), ([1], [0.0]), ([1], [-1.0]), ([0], [1.0]), ([math.nan], [1.0]), ([1], [math.inf])],
)
def test_what_has_no_rate_is_refused(items: list[float], seconds: list[float]) -> None:
    with pytest.raises(ValueError):
        describe(items, seconds)


@given(st.lists(st.floats(1e-6, 1e9), min_size=6, max_size=60))
def test_the_relative_half_width_is_that_of_the_record(values: list[float]) -> None:
    description = describe(values, [1.0] * len(values))
    low, high = description.interval
    assert relative_half_width(values) == pytest.approx((high - low) / 2 / description.median, rel=1e-9)
    assert relative_half_width([3.0] * 6) == 0
    assert relative_half_width([0.0] * 6) is None
    assert relative_half_width([-1.0, -2.0, -3.0] * 3) is None
    for without in ([], [1.0] * 5, [0.0] * 9):
        assert relative_half_width(without) is None
