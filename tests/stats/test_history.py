"""A history of rates: planted changes of level are found at their places, noise has none, and the trend is Sen's."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.correlation import lag_correlation, variance_inflation
from cotenant.stats.history import LEAST_RUN, P_CHANGE, change_points, trend


def history(*levels: tuple[int, float], noise: float = 0.005, seed: int = 1) -> list[float]:
    generator = np.random.default_rng(seed)
    return [level * float(np.exp(generator.normal(0, noise))) for count, level in levels for _ in range(count)]


def test_a_step_two_steps_and_a_dip_that_returns_are_found_at_their_places() -> None:
    for levels, places, ratios in (
        (((12, 100.0), (12, 92.0)), [12], [0.92]),
        (((15, 100.0), (15, 110.0), (15, 95.0)), [15, 30], [1.1, 95 / 110]),
        (((20, 100.0), (20, 90.0), (20, 100.0)), pytest.approx([20, 40], abs=2), [0.9, 1 / 0.9]),
    ):
        changes = change_points(history(*levels), 0.02)
        assert [change.index for change in changes] == places
        assert [change.ratio for change in changes] == pytest.approx(ratios, abs=0.01)
        assert all(change.p < 0.01 for change in changes)


def test_the_p_of_one_of_several_windows_is_corrected_for_their_number() -> None:
    """30 launches have three windows: all, the first 21 and the last 21. Without ties one place is the likeliest."""
    rates = [100.0 + (7 * k) % 15 / 10 + 50 * (k >= 15) for k in range(30)]
    (change,) = change_points(rates, 0.02)
    assert change.index == 15
    assert change.p == pytest.approx(3 * 2 * math.exp(-6 * 225**2 / (30**3 + 30**2)))


def test_one_bad_night_and_a_step_below_the_margin_are_no_change() -> None:
    night = history((20, 100.0))
    night[9] = 50.0
    for rates in (night, history((15, 100.0), (15, 99.0), noise=0.001)):
        assert change_points(rates, 0.02) == ()


@given(st.lists(st.floats(1, 100), max_size=5))
def test_too_short_a_history_has_no_change(rates: list[float]) -> None:
    assert change_points(rates, 0.02) == ()


def brute_force(rates: list[float]) -> tuple[int, float]:
    """Return Pettitt's most likely place and its p, by comparing every entry before it with every one after it.

    Where entries are like those before them, beside their levels, the comparisons say less.
    """
    n = len(rates)
    places = range(LEAST_RUN, n - LEAST_RUN + 1)
    counts = [abs(sum((a > b) - (a < b) for a in rates[:k] for b in rates[k:])) for k in places]
    at = places[counts.index(max(counts))]
    beside = [float(log - np.median(part)) for part in np.split(np.log(rates), [at]) for log in part]
    most = max(counts) / math.sqrt(variance_inflation(lag_correlation(beside)))
    return at, min(1.0, 2 * math.exp(-6 * most**2 / (n**3 + n**2)))


LEAST_DIVIDED = 16
"""Of fewer entries even a perfect step has no p that passes."""


@given(
    st.lists(st.integers(1, 12).map(float), min_size=LEAST_DIVIDED, max_size=24),
    st.integers(8, 12),
    st.sampled_from([0.0, 6.0, 12.0]),
)
def test_the_place_is_that_of_all_pairs(values: list[float], place: int, raised: float) -> None:
    """So few entries are one window. A change that leaves neither side enough to be divided again is the only one."""
    rates = [value + raised * (index >= place) for index, value in enumerate(values)]
    at, p = brute_force(rates)
    found = {change.index: change.p for change in change_points(rates, 1e-9)}
    step = float(np.median(np.log(rates[at:])) - np.median(np.log(rates[:at])))
    if p >= P_CHANGE or not step:
        assert found == {}
    elif max(at, len(rates) - at) < LEAST_DIVIDED:
        assert found == {at: pytest.approx(p)}


def test_the_place_of_a_perfect_step_is_found_with_its_p() -> None:
    rates = [7.0 + at % 3 + 5 * (at >= 10) for at in range(20)]
    at, p = brute_force(rates)
    assert (at, p < P_CHANGE) == (10, True)
    assert {change.index: change.p for change in change_points(rates, 1e-9)} == {10: pytest.approx(p)}


@pytest.mark.slow
def test_a_step_of_five_percent_is_found_and_noise_has_none() -> None:
    """Ten launches before and ten after the step, 1 % of noise; the place found is within two launches."""
    draws, found, said = 1000, 0, 0
    for seed in range(draws):
        changes = change_points(history((10, 100.0), (10, 95.0), noise=0.01, seed=seed), 0.02)
        found += len(changes) == 1 and abs(changes[0].index - 10) <= 2
        said += bool(change_points(history((20, 100.0), noise=0.02, seed=seed), 0.02))
    assert found / draws > 0.8
    assert said / draws <= 0.01


@pytest.mark.slow
def test_a_dip_of_fifteen_launches_is_found() -> None:
    draws, found, placed = 300, 0, 0
    for seed in range(draws):
        changes = change_points(history((30, 100.0), (15, 90.0), (30, 100.0), noise=0.01, seed=seed), 0.02)
        found += len(changes) == 2
        placed += [change.index for change in changes] == pytest.approx([30, 45], abs=2)
    assert found / draws > 0.8
    assert placed / draws > 0.7


DAY = 86_400.0
rates = st.lists(st.floats(1, 1e6), min_size=4, max_size=20)


def test_time_counts_and_not_the_number_of_the_launch() -> None:
    times = [0.0, *(40 * DAY + index for index in range(10)), 80 * DAY]
    found = trend(times, [100 * 0.9 ** (time / times[-1]) for time in times])
    assert (found.ratio, *found.interval) == pytest.approx((0.9, 0.9, 0.9))
    assert found.p < 0.01


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
    if found is None:  # Sen's variance loses a term for each tie of times or of rates.
        assert len(set(times)) < len(times)
        assert len(set(launches)) < len(launches)
        return
    assert math.log(found.ratio) == pytest.approx(float(np.median(slopes)) * times[-1], rel=1e-6, abs=1e-9)
    low, high = found.interval
    assert low <= found.ratio * (1 + 1e-9)
    assert found.ratio <= high * (1 + 1e-9)


def test_few_launches_or_no_time_are_no_trend_and_what_is_no_series_is_refused() -> None:
    for times in ([], [0, 1, 2], [5, 5, 5, 5]):
        assert trend(times, [4.0, 3.0, 2.0, 1.0][: len(times)]) is None
    for times, launches in (([0, 1], [1.0]), ([0, 2, 1, 3], [1.0] * 4), ([0, 1, 2, 3], [0.0] * 4)):
        with pytest.raises(ValueError):
            trend(times, launches)
    apart = trend([0.0, 1e-300, 2e-300, 1e9], [1e300, 1e-300, 1e300, 1e-300])
    assert all(map(math.isfinite, (apart.ratio, *apart.interval)))


@pytest.mark.slow
def test_the_interval_covers_what_it_says_and_noise_has_no_trend() -> None:
    """Twelve launches at random times in 100 days, with 1 % of noise and a rate that falls by 5 % or not at all."""
    generator = np.random.default_rng(20261121)
    draws, covered, found, said = 4000, 0, 0, 0
    for _ in range(draws):
        times = np.sort(generator.uniform(0, 100 * DAY, 12)).tolist()
        noise = np.exp(generator.normal(0, 0.01, 12))
        slope = 0.95 ** ((np.asarray(times) - times[0]) / (times[-1] - times[0]))
        there, nothing = trend(times, (100 * noise * slope).tolist()), trend(times, (100 * noise).tolist())
        covered += there.interval[0] <= 0.95 <= there.interval[1]
        found += there.real
        said += nothing.real
    assert 0.93 <= covered / draws <= 0.985
    assert found / draws > 0.45
    assert said / draws <= 0.01
