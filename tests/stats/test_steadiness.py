"""Drift, outliers, spikes and slow starts: against brute force and scipy, and planted ones are found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cotenant.stats.steadiness import Spikes, drift, mann_kendall, outliers, slow_start, spikes, theil_sen

values = st.lists(st.floats(0.1, 100).map(lambda one: round(one, 1)), min_size=2, max_size=30)


@given(values)
def test_the_slope_is_the_median_of_all_pairs(series: list[float]) -> None:
    assert theil_sen(series) == pytest.approx(float(stats.theilslopes(series).slope))


@given(st.lists(st.floats(0.1, 100), min_size=11, max_size=40, unique=True))
def test_without_ties_it_is_kendalls_tau(series: list[float]) -> None:
    """Our p is that of scipy's tau by the normal approximation, with a continuity correction of one."""
    n = len(series)
    tau = float(stats.kendalltau(range(n), series).statistic)
    score = max(0.0, abs(tau * n * (n - 1) / 2) - 1)
    z = score / math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    assert mann_kendall(series) == pytest.approx(2 * stats.norm.sf(z), rel=1e-6)


@given(values)
def test_order_alone_counts(series: list[float]) -> None:
    p = mann_kendall(series)
    assert 0 <= p <= 1
    assert mann_kendall(series[::-1]) == pytest.approx(p)
    assert mann_kendall([one * 7 for one in series]) == pytest.approx(p)


def test_a_planted_drift_is_found_and_a_constant_has_none() -> None:
    noise = np.random.default_rng(4).normal(0, 0.002, 20)
    found = drift((100 * (1 + np.linspace(0, 0.05, 20) + noise)).tolist())
    assert found.p < 0.01
    assert found.change == pytest.approx(0.05, abs=0.01)
    assert mann_kendall([3.0] * 20) == mann_kendall([1, 2]) == 1
    with pytest.raises(ValueError, match="1 values"):
        theil_sen([1])


def test_only_far_values_are_outliers() -> None:
    steady = [100.0, 101, 99, 100.5, 99.5, 100.2, 99.8]
    for series, far in (
        (steady, ()),
        ([*steady, 10.0], (7,)),
        ([150.0, *steady], (0,)),
        ([1.0] * 5 + [9.0], ()),
        ([], ()),
    ):
        assert outliers(series) == far


def test_a_trend_is_found_among_very_many_values() -> None:
    found = drift([100 + index / 10_000 for index in range(50_000)])
    assert found.p < 1e-9
    assert found.change == pytest.approx(5 / 102.5, rel=0.01)


@settings(max_examples=20)
@given(st.permutations(range(60)))
def test_chance_makes_no_trend_among_many_values_of_one_level(order: list[int]) -> None:
    repeated = [1000.0 + one for one in order] * 100
    assert abs(drift(repeated).change) < 0.07


def test_a_slow_start_is_one_that_chance_would_not_make() -> None:
    for series, first in (
        ([9.0, 8.0, *[1.0] * 18], 2),
        ([9.0, *[1.0] * 99], 0),
        ([9.0, *[1.0] * 100], 1),
        ([9.0, 8.0, *[1.0] * 12], 0),
        ([9.0, 8.0, *[1.0] * 13], 2),
        ([*[9.0] * 5, *[1.0] * 15], 5),
        ([*[9.0] * 6, *[1.0] * 14], 0),
        ([9.0, 8.0, *[1.0] * 17, 8.5], 0),
        ([1.0] * 20, 0),
        ([], 0),
        (range(100_000, 0, -1), 25_000),
    ):
        assert slow_start(series) == first


@given(st.lists(st.integers(0, 9), min_size=12, max_size=40), st.integers(0, 7))
def test_a_slow_start_is_the_longest_above_all_later_values(series: list[int], raised: int) -> None:
    n = len(series)
    times = [float(one + (10 if index < raised else 0)) for index, one in enumerate(series)]
    above = [k for k in range(1, n // 4 + 1) if min(times[:k]) > max(times[k:]) and math.comb(n, k) > 100]
    assert slow_start(times) == max(above, default=0)


def test_in_any_order_a_slow_start_is_as_rare_as_it_says() -> None:
    rng = np.random.default_rng(3)
    found = sum(bool(slow_start(list(rng.normal(10, 1, 20)))) for _ in range(3000))
    assert found / 3000 < 0.012


def test_a_spike_is_ascribed_to_the_wait_or_to_the_work() -> None:
    steady, waits = [1.0 + index % 5 / 100 for index in range(20)], [0.1] * 20
    for value, wait, found in (
        (3.0, 0.1, Spikes((), (20,))),  # the work took longer
        (3.0, 2.0, Spikes((20,), ())),  # the wait for input did
        (3.0, 1.2, Spikes((20,), ())),  # mostly the wait
        (3.0, 1.0, Spikes((), (20,))),  # mostly the work
        (0.2, 0.0, Spikes((), (20,))),  # too fast
        (1.1, 0.2, Spikes((), ())),  # near the others
    ):
        assert spikes([*steady, value], [*waits, wait]) == found
    even = [1.0 + index % 5 / 1e7 for index in range(20)]
    assert spikes([*even, 1.009], [0.0] * 21) == spikes([], []) == Spikes((), ())
    assert spikes([*even, 1.011], [0.0] * 21) == Spikes((), (20,))


def test_three_values_are_the_fewest_with_a_trend() -> None:
    assert mann_kendall([1.0, 2.0]) == 1.0
    # The score of three rising values is 3, its variance 11 / 3 (Kendall, 1948), less half a step of continuity.
    assert mann_kendall([1.0, 2.0, 3.0]) == pytest.approx(2 * stats.norm.sf(2 / math.sqrt(11 / 3)))
