from __future__ import annotations

import math
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.comparison import compare
from cotenant.stats.scaling import Scaled, scaling

RATES = st.lists(st.floats(0.1, 1e9), min_size=1, max_size=2)


def test_by_hand() -> None:
    assert scaling({4: [300.0], 1: [100.0], 2: [190.0]}) == (
        Scaled(1, 1, 100.0, 1.0, None),
        Scaled(2, 1, 190.0, 0.95, None),
        Scaled(4, 1, 300.0, 0.75, None),
    )


def test_launches_count_by_their_medians() -> None:
    one, two = scaling({1: [100.0, 50.0, 101.0], 2: [180.0, 400.0, 179.0, 182.0]})
    assert (one.rate, two.rate) == (100.0, 181.0)
    assert two.efficiency == 181 / 200
    assert one.interval is None


def test_the_interval_lies_around_the_efficiency_as_wide_as_medians_err() -> None:
    """The geometric means of these launches are half as far apart again as their medians."""
    alone, together = [100.0, 50.0, 101.0], [180.0, 400.0, 179.0, 182.0]
    _, two = scaling({1: alone, 2: together})
    assert two.efficiency is not None
    assert two.interval is not None
    low, high = (math.log(end / two.efficiency) for end in two.interval)
    of_means = compare(alone, together).interval
    assert of_means is not None
    half = math.log(of_means[1] / of_means[0]) / 2
    assert (low, high) == pytest.approx((-half * math.sqrt(math.pi / 2), half * math.sqrt(math.pi / 2)))


@pytest.mark.parametrize("launches", [3, 5])
def test_the_interval_covers_what_it_says(launches: int) -> None:
    """Simulated: 2 % between launches, an efficiency of 0.9."""
    random, draws = np.random.default_rng(7), 1000
    noise = np.exp(random.normal(0, 0.02, (draws, 2, launches)))
    held = 0
    for alone, together in noise:
        _, four = scaling({1: (100 * alone).tolist(), 4: (360 * together).tolist()})
        assert four.interval is not None
        held += four.interval[0] <= 0.9 <= four.interval[1]
    assert held / draws >= 0.94


def test_without_one_device_there_is_no_efficiency() -> None:
    assert scaling({2: [10.0] * 3, 4: [20.0] * 3}) == (Scaled(2, 3, 10.0, None, None), Scaled(4, 3, 20.0, None, None))


@pytest.mark.parametrize(("alone", "together"), [(2, 5), (5, 2)])
def test_below_three_launches_of_either_there_is_no_interval(alone: int, together: int) -> None:
    _, two = scaling({1: [10.0] * alone, 2: [19.0, 19.1, 19.2, 19.0, 19.1][:together]})
    assert two.efficiency is not None
    assert two.interval is None


@given(st.dictionaries(st.integers(1, 64), RATES, max_size=5), st.floats(0.5, 2.0))
def test_laws(rates: dict[int, list[float]], factor: float) -> None:
    found = scaling(rates)
    assert [one.devices for one in found] == sorted(rates)
    for one, other in zip(
        found, scaling({k: [factor * rate for rate in of_k] for k, of_k in rates.items()}), strict=True
    ):
        assert one.rate == median(rates[one.devices])
        assert one.launches == len(rates[one.devices])
        assert (one.efficiency is None) == (1 not in rates)
        # A faster machine scales the same.
        assert one.efficiency == pytest.approx(other.efficiency)


@pytest.mark.parametrize("rates", [{0: [1.0]}, {1: []}, {2: [0.0]}, {1: [-1.0]}])
def test_what_is_no_rate_of_devices(rates: dict[int, list[float]]) -> None:
    with pytest.raises(ValueError):
        scaling(rates)
