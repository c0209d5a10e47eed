"""Correlation of observations in a row: against scipy, and the coverage that intervals have when they allow for it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cotenant.stats.correlation import MOST, correlation_of_means, effective_count, lag_correlation, scaled_rank
from cotenant.stats.describe import describe
from cotenant.stats.steadiness import drift

numbers = st.lists(st.integers(1, 50).map(float), min_size=3, max_size=40)


def correlated(n: int, r: float, launches: int, seed: int = 1) -> npt.NDArray[np.float64]:
    """Return standard normal values (launches, n), each correlated by r with the one before it."""
    made = np.random.default_rng(seed).standard_normal((launches, n))
    for at in range(1, n):
        made[:, at] = r * made[:, at - 1] + math.sqrt(1 - r * r) * made[:, at]
    return made


@given(numbers)
def test_it_is_the_correlation_of_ranks_with_those_before(values: list[float]) -> None:
    deviations = stats.rankdata(values) - (len(values) + 1) / 2
    squares = float(deviations @ deviations)
    expected = float(deviations[1:] @ deviations[:-1]) / squares if squares else 0.0
    assert lag_correlation(values) == pytest.approx(min(max(expected, 0.0), MOST))
    assert effective_count(values) <= len(values)


def test_alternating_values_count_fully_but_a_slope_hardly() -> None:
    assert effective_count([1.0, 2.0] * 10) == 20
    assert effective_count([5.0] * 20) == 20
    slope = [float(value) for value in range(1, 41)]
    assert effective_count(slope) < 2
    assert effective_count([*slope[:20], 1e9, *slope[20:]]) < 4
    assert effective_count([1.0, 2.0]) == 2


def test_a_rank_among_fewer_is_the_same_share_of_all() -> None:
    assert [scaled_rank(1, 6, n) for n in (6, 12, 20, 60)] == [1, 1, 2, 5]
    assert all(scaled_rank(rank, 20, 20) == rank for rank in range(1, 21))


@given(st.floats(0, MOST), st.integers(1, 40))
def test_correlation_of_means_follows_from_the_covariances(r: float, size: int) -> None:
    steps = np.arange(2 * size)
    covariances = r ** np.abs(steps[:, None] - steps)
    expected = covariances[:size, size:].sum() / covariances[:size, :size].sum()
    assert correlation_of_means(r, size) == pytest.approx(expected)


def test_what_a_fit_takes_from_a_correlation_is_given_back() -> None:
    """25 values that are correlated by 0.5 seem to be correlated by 0.3 once a parabola is fitted and subtracted."""
    places = np.linspace(-1, 1, 25)
    rests = [row - np.polyval(np.polyfit(places, row, 2), places) for row in correlated(25, 0.5, 400)]
    seen, given_back = (np.mean([lag_correlation(list(rest), fitted) for rest in rests]) for fitted in (0, 3))
    assert seen < 0.33
    assert 0.4 < given_back < 0.52


@pytest.mark.slow
@pytest.mark.parametrize("n", [15, 25, 50, 100])
@pytest.mark.parametrize("r", [0.0, 0.3, 0.5, 0.7])
def test_coverage_and_false_drift_in_thousands_of_launches(n: int, r: float) -> None:
    rows = np.exp(0.05 * correlated(n, r, 2000, seed=n))
    intervals = [describe(row.tolist(), [1.0] * n).interval for row in rows]
    covered = sum(pair is not None and pair[0] <= 1 <= pair[1] for pair in intervals) / len(rows)
    assert covered >= (0.90 if n == 15 else 0.94)
    assert sum(drift(row.tolist()).p < 0.01 for row in rows) / len(rows) <= (0.05 if n < 50 else 0.025)
