"""The interval of a mean against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cotenant.stats.launches import half_width


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=30, unique=True))
def test_it_is_half_of_students_interval(values: list[float]) -> None:
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    assert half_width(values) == pytest.approx((high - low) / 2, rel=1e-6)


def test_one_value_has_none() -> None:
    assert half_width([1.0]) is None
    assert half_width([]) is None
    assert half_width([2.0, 2.0]) == 0
