"""Curves of sensitivity: known curves are found again, although the job's speed differs from round to round."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.kept import Kept
from cotenant.stats.sensitivity import Curve, LevelBlock, Point, hinge, over_launches, points_of

LEVELS = (25, 50, 75, 100)


def kept_at(x: float, slope: float, knee: float) -> float:
    return 1 - slope * max(0.0, x - knee)


def launch(seed: int, rounds: int = 3, slope: float = 0.03, knee: float = 4.0, noise: float = 0.0) -> list[LevelBlock]:
    """Return blocks of a job beside a neighbour that achieves level / 10; the job's speed is drawn for each round."""
    chance = random.Random(seed)
    blocks = []
    for number in range(rounds):
        speed = chance.uniform(50, 200)
        for level in chance.sample((0, *LEVELS), 1 + len(LEVELS)):
            rate = speed * kept_at(level / 10, slope, knee) * math.exp(chance.gauss(0, noise))
            blocks.append(LevelBlock(level, number, level / 10, rate, 5))
    return blocks


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
        assert found.knee is not None
        assert found.knee / unit == pytest.approx(knee, abs=1e-3)


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0.1, 1.5)), max_size=8))
def test_no_hinge_gains_and_no_other_one_is_nearer_to_the_points(others: list[tuple[float, float]]) -> None:
    points = [(0.0, 1.0), *others]
    found = hinge(points)
    assert found.slope >= 0

    def squares(slope: float, knee: float) -> float:
        return sum((kept_at(x, slope, knee) - kept) ** 2 for x, kept in points)

    best = squares(found.slope, found.knee or 0.0)
    grid = [(slope / 100, knee) for slope in range(8) for knee in range(0, 50, 3)]
    assert all(best <= squares(*other) + 1e-9 for other in grid)


def points(launches: list[list[LevelBlock]]) -> list[Point]:
    return over_launches([points_of(blocks) for blocks in launches])


def test_what_a_round_has_in_common_cancels() -> None:
    found = Curve(tuple(points([launch(1)])))
    assert [point.kept.value for point in found.points] == pytest.approx([kept_at(x / 10, 0.03, 4.0) for x in LEVELS])
    assert [point.achieved for point in found.points] == pytest.approx([x / 10 for x in LEVELS])
    assert [(point.kept.n, point.kept.over) for point in found.points] == [(3, "rounds")] * 4
    assert (found.hinge.slope, found.hinge.knee) == (pytest.approx(0.03), pytest.approx(4.0))
    assert found.loses


def test_of_several_launches_a_sample_is_a_launch() -> None:
    two, three = points([launch(1), launch(2)]), points([launch(1), launch(2), launch(3)])
    assert [(point.kept.n, point.kept.interval) for point in two] == [(2, None)] * 4
    assert [(point.kept.n, point.kept.interval is None) for point in three] == [(3, False)] * 4


def test_too_little_has_no_interval_and_nothing_without_a_base() -> None:
    found = points_of(launch(1, rounds=2))
    assert [point.kept.interval for point in found] == [None] * 4
    assert not Curve(tuple(found)).loses
    assert points_of([block for block in launch(1) if block.level]) == []


def test_levels_at_which_a_neighbour_got_no_more_are_named() -> None:
    made = tuple(Point(level, got, Kept(1.0, None, 4)) for level, got in ((25, 2.5), (50, 4.1), (100, 5.0)))
    assert Curve(made).unreached == (100,), "5 of 10 that level 25 promises; 4.1 of 5 is near"
    assert Curve(made[:1]).unreached == ()


def test_numbers_that_cannot_be_are_left_out() -> None:
    wrong = [LevelBlock(50, 0, math.inf, 5.0, 1), LevelBlock(25, 1, -1.0, 5.0, 1), LevelBlock(75, 0, 1e-200, -5.0, 1)]
    wrong += [LevelBlock(100, 0, 1e-200, 4.0, 1), LevelBlock(100, 1, math.nan, math.inf, 1)]
    found = points_of([LevelBlock(0, 0, 0.0, 5.0, 1), LevelBlock(0, 1, 0.0, 5.0, 1), *wrong])
    assert [(point.level, point.kept.value) for point in found] == [(100, pytest.approx(0.8))]
    assert Curve(tuple(found)).hinge.slope >= 0
