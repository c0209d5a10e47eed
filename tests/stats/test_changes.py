"""Change points: planted ones are found where they are, and noise has none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.changes import change_points


def history(*levels: tuple[int, float], noise: float = 0.005, seed: int = 1) -> list[float]:
    generator = np.random.default_rng(seed)
    return [level * float(np.exp(generator.normal(0, noise))) for count, level in levels for _ in range(count)]


def test_a_step_is_found_at_its_place() -> None:
    (change,) = change_points(history((12, 100.0), (12, 92.0)), 0.02)
    assert change.index == 12
    assert change.ratio == pytest.approx(0.92, abs=0.01)
    assert change.p < 0.01


def test_two_steps_are_two() -> None:
    found = change_points(history((15, 100.0), (15, 110.0), (15, 95.0)), 0.02)
    assert [change.index for change in found] == [15, 30]
    assert [change.ratio for change in found] == pytest.approx([1.1, 95 / 110], abs=0.01)


def test_one_bad_night_is_no_change() -> None:
    rates = history((20, 100.0))
    rates[9] = 50.0
    assert change_points(rates, 0.02) == ()


def test_a_step_below_the_margin_is_none() -> None:
    assert change_points(history((15, 100.0), (15, 99.0), noise=0.001), 0.02) == ()


@given(st.lists(st.floats(1, 100), max_size=5))
def test_too_short_a_history_has_no_change(rates: list[float]) -> None:
    assert change_points(rates, 0.02) == ()


def test_noise_seldom_changes() -> None:
    said = sum(bool(change_points(history((30, 100.0), noise=0.05, seed=seed), 0.02)) for seed in range(200))
    assert said <= 6
