"""Curves over pressure: known curves are found again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.kept import Kept
from cotenant.stats.pressure import Curve, Point, hinge


def kept_at(x: float, slope: float, knee: float) -> float:
    return 1 - slope * max(0.0, x - knee)


@given(
    slope=st.floats(0.001, 0.05),
    knee=st.floats(0, 15),
    xs=st.lists(st.integers(1, 20), min_size=5, max_size=9, unique=True),
    unit=st.floats(1e-3, 1e6),
)
def test_a_hinge_is_found_again_in_any_unit(slope: float, knee: float, xs: list[int], unit: float) -> None:
    points = [(x * unit, kept_at(x, slope, knee)) for x in (0, *xs)]
    found = hinge(points)
    beyond = sum(x > knee for x in xs)
    if beyond == 0:
        assert (found.slope, found.knee) == (0, None)
    elif beyond >= 2:
        assert found.slope * unit == pytest.approx(slope, rel=1e-4)
        assert found.knee / unit == pytest.approx(knee, abs=1e-3)


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0.1, 1.5)), max_size=8))
def test_the_hinge_has_the_least_squared_error(others: list[tuple[float, float]]) -> None:
    points = [(0.0, 1.0), *others]
    found = hinge(points)
    assert found.slope >= 0

    def squares(slope: float, knee: float) -> float:
        return sum((kept_at(x, slope, knee) - kept) ** 2 for x, kept in points)

    best = squares(found.slope, found.knee or 0.0)
    grid = [(slope / 100, knee) for slope in range(8) for knee in range(0, 50, 3)]
    assert all(best <= squares(*other) + 1e-9 for other in grid)


def test_a_loss_is_shown_by_an_interval_at_the_highest_level() -> None:
    def curve(*ends: tuple[float, float] | None) -> Curve:
        return Curve(
            tuple(Point(level, level / 10, Kept(0.9, of, 9)) for level, of in zip((50, 100), ends, strict=True))
        )

    assert curve((0.8, 0.95), (0.85, 0.99)).losing == (50, 100)
    assert curve((0.8, 0.95), (0.85, 0.99)).loses
    assert not curve((0.8, 0.95), (0.85, 1.0)).loses
    assert not curve(None, None).loses


def test_levels_at_which_a_neighbour_got_no_more_are_named() -> None:
    made = tuple(Point(level, got, Kept(1.0, None, 4)) for level, got in ((25, 2.5), (50, 4.1), (100, 5.0)))
    assert Curve(made).unreached == (100,), "5 of 10 that level 25 promises; 4.1 of 5 is near"
    assert Curve(made[:1]).unreached == ()
