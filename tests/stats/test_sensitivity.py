"""Curves of sensitivity: known curves are found again, whatever drifts with the rounds."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.sensitivity import Curve, LevelBlock, Point, blocks_of, curve, hinge

S = 1_000_000_000
LEVELS = (0, 25, 50, 75, 100)


def kept_at(x: float, slope: float, knee: float) -> float:
    return 1 - slope * max(0.0, x - knee)


def launch(seed: int, rounds: int = 3, slope: float = 0.03, knee: float = 4.0, noise: float = 0.0) -> list[LevelBlock]:
    """Blocks of a neighbour that gets level / 10 a second, of a job that each round finds faster or slower."""
    chance = random.Random(seed)
    blocks = []
    for number in range(rounds):
        speed = chance.uniform(50, 200)
        for level in chance.sample(LEVELS, len(LEVELS)):
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


def test_what_a_round_has_in_common_cancels() -> None:
    found = curve([launch(1)])
    assert found is not None
    assert [point.kept for point in found.points] == pytest.approx([kept_at(x / 10, 0.03, 4.0) for x in LEVELS])
    assert [point.achieved for point in found.points] == pytest.approx([x / 10 for x in LEVELS])
    assert [point.n for point in found.points] == [3] * 5
    assert (found.samples, found.launches, found.points[0].interval) == ("rounds", 1, None)
    assert (found.hinge.slope, found.hinge.knee) == (pytest.approx(0.03), pytest.approx(4.0))
    assert found.loses


def test_from_three_launches_on_a_sample_is_a_launch() -> None:
    two, three = curve([launch(1), launch(2)]), curve([launch(1), launch(2), launch(3)])
    assert two is not None
    assert three is not None
    assert (two.samples, two.points[2].n, two.launches) == ("rounds", 6, 2)
    assert (three.samples, three.points[2].n, three.launches) == ("launches", 3, 3)


def test_intervals_cover_and_what_loses_nothing_is_not_called_a_loss() -> None:
    """Of 400 curves of 4 rounds each at 2 % noise; a share of 0.95 errs by 0.011."""
    covered, called = 0, 0
    for seed in range(400):
        found = curve([launch(seed, rounds=4, noise=0.02)])
        flat = curve([launch(seed, rounds=4, slope=0.0, noise=0.02)])
        assert found is not None
        assert flat is not None
        interval = found.points[-1].interval
        assert interval is not None
        covered += interval[0] <= kept_at(10, 0.03, 4.0) <= interval[1]
        called += flat.loses
    assert 0.92 < covered / 400 < 0.98
    assert called / 400 < 0.06


def test_too_little_has_no_interval_and_nothing_without_a_base() -> None:
    found = curve([launch(1, rounds=2)])
    assert found is not None
    assert [point.interval for point in found.points] == [None] * 5
    assert not found.loses
    assert curve([[block for block in launch(1) if block.level]]) is None
    assert curve([]) is None


def test_levels_at_which_a_neighbour_got_no_more_are_named() -> None:
    points = [Point(level, achieved, 1.0, None, 4) for level, achieved in ((0, 0.0), (25, 2.5), (50, 4.1), (100, 5.0))]
    assert Curve(tuple(points), "rounds", 1).unreached == (100,), "5 of 10 that level 25 promises; 4.1 of 5 is near"
    assert Curve(tuple(points[:2]), "rounds", 1).unreached == ()
    assert Curve(tuple(points[:1]), "rounds", 1).unreached == ()


def test_numbers_that_cannot_be_are_left_out() -> None:
    wrong = [LevelBlock(50, 0, math.inf, 5.0, 1), LevelBlock(25, 1, -1.0, 5.0, 1), LevelBlock(75, 0, 1e-200, -5.0, 1)]
    wrong += [LevelBlock(100, 0, 1e-200, 4.0, 1), LevelBlock(100, 1, math.nan, math.inf, 1)]
    found = curve([[LevelBlock(0, 0, 0.0, 5.0, 1), LevelBlock(0, 1, 0.0, 5.0, 1), *wrong]])
    assert found is not None
    assert [(point.level, point.kept) for point in found.points] == [(0, 1.0), (100, pytest.approx(0.8))]
    assert found.hinge.slope >= 0


def test_blocks_hold_the_observations_that_lie_inside() -> None:
    pressure = [(0, 3 * S, 0.0), (4 * S, 7 * S, 30.0), (8 * S, 11 * S, 0.0)]
    observed = [(at * S // 2, (at + 2) * S // 2, 10.0 if at < 8 else 5.0) for at in range(0, 20, 2)]
    assert blocks_of([0, 50, 0], pressure, observed) == [
        LevelBlock(0, 0, 0.0, 10.0, 3),
        LevelBlock(50, 0, 10.0, 5.0, 3),
        LevelBlock(0, 1, 0.0, 5.0, 2),
    ]
    (uneven,) = blocks_of([50], [(0, 4 * S, 1.0)], [(0, S // 10, 8.0), (S, 3 * S, 8.0), (3 * S, 3 * S + S // 10, 8.0)])
    assert uneven.rate == pytest.approx(24 / 2.2), "what a loader has ready comes at once, and is no rate"
    (alone,) = blocks_of([0], pressure, [(0, 4 * S, 1.0)])
    assert (alone.rate, alone.observations) == (None, 0)
