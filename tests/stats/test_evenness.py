"""Tests of differences among several means: against scipy's studentised range, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cotenant.stats.evenness import beyond, differences, differences_by_intervals, differences_of
from cotenant.stats.kept import Kept


def test_the_studentised_range_is_that_of_scipy() -> None:
    for q, k, freedom in ((3.0, 2, 1), (40.0, 2, 1), (3.5, 3, 4), (5.0, 16, 30), (6.0, 16, 15), (8.0, 2, 4)):
        assert beyond(q, k, freedom) == pytest.approx(stats.studentized_range.sf(q, k, freedom), rel=5e-3)


def test_a_constant_added_to_a_row_leaves_the_effects_unchanged() -> None:
    rows = np.array([[0.0, 0.1], [0.02, 0.08], [-0.02, 0.12]])
    found, shifted = (differences(table.tolist()) for table in (rows, rows + np.array([[1.0], [2.0], [3.0]])))
    assert shifted.effects == pytest.approx(found.effects)
    # With two columns it is the paired t test.
    assert found.p == pytest.approx(stats.ttest_rel(rows[:, 0], rows[:, 1]).pvalue, rel=1e-2)
    error = float(np.std(rows[:, 1] - rows[:, 0], ddof=1)) / math.sqrt(6)
    shrunk = 1 - error**2 / np.var([0.0, 0.1], ddof=1)
    assert found.effects == pytest.approx((-0.05 * shrunk, 0.05 * shrunk))
    assert found.range == pytest.approx(math.exp(-0.1 * shrunk))
    assert found.least == 0
    assert differences([]) is differences([[1.0, 2.0]]) is differences([[1.0], [2.0]]) is None


def test_without_noise_even_a_tiny_difference_is_significant() -> None:
    assert differences_of([0.5, 0.5, 0.5], 0.1, 4).p == 1
    assert differences_of([0.5, 0.5 + 1e-9], 0.0, 4).p == 0
    assert not differences_of([0.5, 0.51], 0.0, 4).notable, "a difference of 1 % matters to nobody"
    assert differences_of([0.5, 0.53], 0.001, 4).notable
    # If noise explains the spread of the means, shrinking makes them equal.
    assert differences_of([0.0, 0.01], 0.1, 4).range == 1


def test_one_launch_tells_nothing_of_others() -> None:
    sure, apart = Kept(0.9, (0.88, 0.92), 9, "launches"), Kept(0.8, (0.78, 0.82), 9, "launches")
    found = differences_by_intervals([sure, apart])
    assert found.p < 0.001
    assert (found.least, found.freedom) == (1, 16)
    assert differences_by_intervals([sure, Kept(0.8, None, 1)]) is None
    for over in ("rounds", "observations"):
        assert differences_by_intervals([sure, Kept(0.8, (0.78, 0.82), 25, over)]) is None
