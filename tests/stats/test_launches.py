"""Statistics over launches: each launch counts as one rate, and the interval is the t interval of their logarithms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cotenant.stats.launches import across_launches, half_width

rates = st.lists(st.floats(1e-3, 1e6), min_size=3, max_size=20)


@given(rates)
def test_it_is_the_t_interval_of_the_logarithms(launches: list[float]) -> None:
    found = across_launches(launches)
    logs = np.log(launches)
    assert found.rate == pytest.approx(float(stats.gmean(launches)))
    if found.spread:
        expected = stats.t.interval(0.95, len(logs) - 1, loc=logs.mean(), scale=stats.sem(logs))
        assert [math.log(one) for one in found.interval] == pytest.approx(list(map(float, expected)))
    assert min(launches) * (1 - 1e-9) <= found.rate <= max(launches) * (1 + 1e-9)


def test_fewer_than_three_launches_give_no_interval() -> None:
    one, two = across_launches([5.0]), across_launches([4.0, 9.0])
    assert (one.interval, one.spread) == (None, None)
    assert (two.rate, two.interval) == (pytest.approx(6), None)
    for launches in ([], [1.0, 0.0], [math.nan], [math.inf]):
        with pytest.raises(ValueError, match="rates of launches"):
            across_launches(launches)


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=30, unique=True))
def test_it_is_half_of_students_interval(values: list[float]) -> None:
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    assert half_width(values) == pytest.approx((high - low) / 2, rel=1e-6)
