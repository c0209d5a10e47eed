"""Half the width of a median's interval, as the runner computes it, against what a record says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.describe import describe, relative_half_width

rates = st.lists(st.floats(1e-6, 1e9), min_size=6, max_size=60)


@given(rates)
def test_it_is_that_of_the_record(values: list[float]) -> None:
    said = describe(values, [1.0] * len(values))
    assert said.interval is not None
    low, high = said.interval
    assert relative_half_width(sorted(values)) == pytest.approx((high - low) / 2 / said.median, rel=1e-9)


@pytest.mark.parametrize("values", [[], [1.0] * 5, [0.0] * 9])
def test_where_there_is_no_interval_there_is_no_width(values: list[float]) -> None:
    assert relative_half_width(values) is None


def test_equal_rates_have_none_of_it() -> None:
    assert relative_half_width([3.0] * 6) == 0
