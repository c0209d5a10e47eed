"""Jain's index and the worst over the best."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.tenants import fairness

rates = st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=16)


@given(rates)
def test_it_is_jains_index_within_its_bounds(values: list[float]) -> None:
    found = fairness(values)
    exact = [Fraction(value) for value in values]
    jain = sum(exact) ** 2 / (len(exact) * sum(value * value for value in exact))
    assert found.jain == pytest.approx(float(jain))
    assert (1 - 1e-12) / len(values) <= found.jain <= 1
    assert values[found.slowest] == min(values)
    assert found.worst_over_best == pytest.approx(float(min(exact) / max(exact)))


@given(st.floats(1e-300, 1e300), st.integers(1, 64))
def test_equal_tenants_are_served_evenly(rate: float, tenants: int) -> None:
    found = fairness([rate] * tenants)
    assert (found.jain, found.worst_over_best, found.slowest) == (1, 1, 0)


def test_known_values() -> None:
    found = fairness([1.0, 2.0, 3.0])
    assert found.jain == pytest.approx(36 / (3 * 14))
    assert (found.worst_over_best, found.slowest) == (pytest.approx(1 / 3), 0)
    assert fairness([5.0, 1e-300]).jain == 0.5
    assert fairness([4.0, 2.0, 2.0]).slowest == 1


def test_rounding_never_passes_one() -> None:
    rates = [1.0, 1.0, 0.999999999999889, 0.999999999999778, 0.9999999999996669, 0.9999999999996669]
    assert sum(rates) ** 2 / (6 * sum(rate * rate for rate in rates)) > 1
    assert fairness(rates).jain == 1


@pytest.mark.parametrize("values", [[], [0.0], [1.0, -1.0], [1.0, math.nan], [math.inf]])
def test_what_is_no_rate_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError):
        fairness(values)
