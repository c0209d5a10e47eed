from __future__ import annotations

import math
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.comparison import compare
from cotenant.stats.interference import efficiency
from cotenant.stats.kept import Kept

RATES = st.lists(st.floats(0.1, 1e9), min_size=1, max_size=2)
ALONE, TOGETHER = [100.0, 50.0, 101.0], [180.0, 400.0, 179.0, 182.0]


def test_by_hand() -> None:
    assert efficiency(1, [100.0], [100.0]) == Kept(1.0, None, 1, "launches")
    assert efficiency(2, [190.0], [100.0]) == Kept(0.95, None, 1, "launches")
    assert efficiency(4, [300.0], [100.0]) == Kept(0.75, None, 1, "launches")
    assert efficiency(4, [20.0] * 3, []) is None


def test_launches_count_by_their_medians() -> None:
    two = efficiency(2, TOGETHER, ALONE)
    assert (two.value, two.n) == (181 / 200, 3)
    assert efficiency(1, ALONE, ALONE).interval is None


def test_the_interval_lies_around_the_efficiency_as_wide_as_medians_err() -> None:
    """The interval is centred on the ratio of medians; that of the geometric means is half as large again."""
    two = efficiency(2, TOGETHER, ALONE)
    low, high = (math.log(end / two.value) for end in two.interval)
    of_means = compare(ALONE, TOGETHER).interval
    half = math.log(of_means[1] / of_means[0]) / 2
    assert (low, high) == pytest.approx((-half * math.sqrt(math.pi / 2), half * math.sqrt(math.pi / 2)))


@pytest.mark.parametrize("launches", [3, 5])
def test_the_interval_covers_what_it_says(launches: int) -> None:
    """Simulated launches on four devices and on one differ by 2 %; the true efficiency is 0.9."""
    random, draws = np.random.default_rng(7), 1000
    noise = np.exp(random.normal(0, 0.02, (draws, 2, launches)))
    held = 0
    for alone, together in noise:
        four = efficiency(4, (360 * together).tolist(), (100 * alone).tolist())
        held += four.interval[0] <= 0.9 <= four.interval[1]
    assert held / draws >= 0.94


@pytest.mark.parametrize(("alone", "together"), [(2, 5), (5, 2)])
def test_below_three_launches_of_either_there_is_no_interval(alone: int, together: int) -> None:
    two = efficiency(2, [19.0, 19.1, 19.2, 19.0, 19.1][:together], [10.0] * alone)
    assert two.interval is None


@given(st.integers(1, 64), RATES, RATES, st.floats(0.5, 2.0))
def test_a_faster_machine_scales_the_same(devices: int, rates: list[float], alone: list[float], factor: float) -> None:
    value = efficiency(devices, rates, alone).value
    assert value == median(rates) / (devices * median(alone))
    faster = efficiency(devices, [factor * rate for rate in rates], [factor * rate for rate in alone])
    assert faster.value == pytest.approx(value)


@pytest.mark.parametrize(("devices", "rates"), [(0, [1.0]), (1, []), (2, [0.0]), (1, [-1.0])])
def test_what_is_no_rate_of_devices(devices: int, rates: list[float]) -> None:
    with pytest.raises(ValueError):
        efficiency(devices, rates, [1.0])
