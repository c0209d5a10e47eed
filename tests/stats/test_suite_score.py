"""The suite's score: a weighted geometric mean that knows what is missing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.score import suite_score

ratios = st.lists(st.floats(0.1, 10), min_size=1, max_size=8)


@given(ratios)
def test_of_one_launch_each_it_is_the_geometric_mean(values: list[float]) -> None:
    targets = {str(index): 100.0 for index in range(len(values))}
    rates = {str(index): [100 * value] for index, value in enumerate(values)}
    found = suite_score(rates, targets)
    assert found.value == pytest.approx(math.prod(values) ** (1 / len(values)))
    assert found.interval is None


def test_weights_count() -> None:
    found = suite_score({"a": [2.0], "b": [16.0]}, {"a": 1.0, "b": 1.0}, {"a": 3.0})
    assert found.value == pytest.approx((2**3 * 16) ** 0.25)


def test_what_is_missing_is_named_and_not_a_zero() -> None:
    found = suite_score({"a": [2.0], "b": []}, {"a": 1.0, "b": 1.0, "c": 1.0})
    assert found.value == pytest.approx(2)
    assert found.present == ("a",)
    assert found.missing == ("b", "c")
    assert suite_score({}, {"a": 1.0}).value is None


def test_launches_without_noise_have_an_interval_of_no_width() -> None:
    assert suite_score({"a": [2.0] * 3}, {"a": 1.0}).interval == pytest.approx((2, 2))


@pytest.mark.parametrize(("targets", "weights"), [({"a": 0.0}, {}), ({"a": 1.0}, {"a": -1.0})])
def test_what_cannot_be_weighed_is_refused(targets: dict[str, float], weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="no positive number"):
        suite_score({"a": [1.0]}, targets, weights)


@pytest.mark.slow
def test_the_interval_covers_what_it_says() -> None:
    generator = np.random.default_rng(5)
    noises = (0.01, 0.03, 0.002)
    draws, covered = 4000, 0
    for _ in range(draws):
        rates = {str(noise): np.exp(generator.normal(0, noise, 5)).tolist() for noise in noises}
        interval = suite_score(rates, {str(noise): 1.0 for noise in noises}).interval
        assert interval is not None
        covered += interval[0] <= 1 <= interval[1]
    assert 0.93 <= covered / draws <= 0.97
