"""Trends over launches: what is planted is found, unevenly spaced as it may be, and noise has none."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.history import trend

DAY = 86_400.0
rates = st.lists(st.floats(1, 1e6), min_size=4, max_size=20)


def falling(times: list[float], ratio: float, noise: float = 0.01, seed: int = 1) -> list[float]:
    """Rates that become `ratio` times what they were, at an even pace over time."""
    generator = np.random.default_rng(seed)
    places = [(time - times[0]) / (times[-1] - times[0]) for time in times]
    return [100 * float(ratio**place * np.exp(generator.normal(0, noise))) for place in places]


def test_time_counts_and_not_the_number_of_the_launch() -> None:
    times = [0.0, *(40 * DAY + index for index in range(10)), 80 * DAY]
    found = trend(times, falling(times, 0.9, noise=0))
    assert found is not None
    assert found.ratio == pytest.approx(0.9)
    assert found.interval == pytest.approx((0.9, 0.9))
    assert found.p < 0.001


@given(rates, st.data())
def test_the_slope_is_the_median_of_all_pairs(launches: list[float], data: st.DataObject) -> None:
    gaps = data.draw(st.lists(st.integers(0, 100), min_size=len(launches) - 1, max_size=len(launches) - 1))
    times = [float(time) for time in itertools.accumulate(gaps, initial=0)]
    found = trend(times, launches)
    if times[-1] == 0:
        assert found is None
        return
    pairs = itertools.combinations(zip(times, launches, strict=True), 2)
    slopes = [math.log(b / a) / (later - time) for (time, a), (later, b) in pairs if later > time]
    if found is None:  # Sen's variance loses a term for each tie, of times and of rates.
        assert len(set(times)) < len(times)
        assert len(set(launches)) < len(launches)
        return
    assert math.log(found.ratio) == pytest.approx(float(np.median(slopes)) * times[-1], rel=1e-6, abs=1e-9)
    low, high = found.interval
    assert low <= found.ratio * (1 + 1e-9)
    assert found.ratio <= high * (1 + 1e-9)


def test_few_launches_or_no_time_are_no_trend() -> None:
    assert trend([0, 1, 2], [3.0, 2.0, 1.0]) is None
    assert trend([5, 5, 5, 5], [4.0, 3.0, 2.0, 1.0]) is None
    assert trend([], []) is None


@pytest.mark.parametrize(("times", "launches"), [([0, 1], [1.0]), ([0, 2, 1, 3], [1.0] * 4), ([0, 1, 2, 3], [0.0] * 4)])
def test_what_is_no_series_is_refused(times: list[float], launches: list[float]) -> None:
    with pytest.raises(ValueError):
        trend(times, launches)


def test_moments_apart_are_no_overflow() -> None:
    found = trend([0.0, 1e-300, 2e-300, 1e9], [1e300, 1e-300, 1e300, 1e-300])
    assert found is not None
    assert all(map(math.isfinite, (found.ratio, *found.interval)))


@pytest.mark.slow
def test_the_interval_covers_what_it_says_and_noise_has_no_trend() -> None:
    """Twelve launches on random days, 1 % of noise, a rate that falls by 5 % or not at all."""
    generator = np.random.default_rng(20261121)
    draws, covered, found, said = 4000, 0, 0, 0
    for _ in range(draws):
        times = np.sort(generator.uniform(0, 100 * DAY, 12)).tolist()
        noise = np.exp(generator.normal(0, 0.01, 12))
        slope = 0.95 ** ((np.asarray(times) - times[0]) / (times[-1] - times[0]))
        there, nothing = trend(times, (100 * noise * slope).tolist()), trend(times, (100 * noise).tolist())
        assert there is not None
        assert nothing is not None
        covered += there.interval[0] <= 0.95 <= there.interval[1]
        found += there.real
        said += nothing.real
    assert 0.93 <= covered / draws <= 0.97
    assert found / draws > 0.8
    assert said / draws <= 0.012
