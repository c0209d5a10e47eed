"""Tenants of one launch: fairness, the time in which all of them are under load, and work beside the others."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cotenant.stats.tenants import Reading, Span, WorkBeside, common_load, jain, overlap, work_beside

rates = st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=16)


@given(rates)
def test_it_is_jains_index_within_its_bounds(values: list[float]) -> None:
    found = jain(values)
    exact = [Fraction(value) for value in values]
    expected = sum(exact) ** 2 / (len(exact) * sum(value * value for value in exact))
    assert found == pytest.approx(float(expected))
    assert (1 - 1e-12) / len(values) <= found <= 1


@given(st.floats(1e-300, 1e300), st.integers(1, 64))
def test_equal_tenants_are_served_evenly(rate: float, tenants: int) -> None:
    assert jain([rate] * tenants) == 1


def test_known_values_and_rounding_that_never_passes_one() -> None:
    assert jain([1.0, 2.0, 3.0]) == pytest.approx(36 / (3 * 14))
    assert jain([5.0, 1e-300]) == 0.5
    rates = [1.0, 1.0, 0.999999999999889, 0.999999999999778, 0.9999999999996669, 0.9999999999996669]
    assert sum(rates) ** 2 / (6 * sum(rate * rate for rate in rates)) > 1
    assert jain(rates) == 1


@pytest.mark.parametrize("values", [[], [0.0], [1.0, -1.0], [1.0, math.nan], [math.inf]])
def test_what_is_no_rate_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError):
        jain(values)


spans = st.tuples(st.integers(0, 200), st.integers(0, 200)).map(lambda pair: (min(pair), max(pair)))
some_spans = st.lists(spans, min_size=1, max_size=6)


def test_common_load_spans_latest_start_to_earliest_end() -> None:
    assert common_load([(0, 100), (5, 90), (3, 95)]) == (5, 90)
    assert common_load([(0, 10), (20, 30)]) == (20, 20)
    assert common_load([(3, 8)]) == (3, 8)
    assert [common_load([(3, 8), (5, 9)], since_ns=since_ns) for since_ns in (2, 7)] == [(2, 8), (5, 8)]


@given(some_spans, spans)
@example([(10, 20), (30, 40)], (15, 35))
@example([(10, 20), (30, 40)], (13, 13))
def test_overlap_counts_nanoseconds(observations: list[Span], common: Span) -> None:
    observed = [ns for start, end in observations for ns in range(start, end)]
    if not observed:
        with pytest.raises(ValueError, match="no observed time"):
            overlap(observations, common)
        return
    share = overlap(observations, common)
    assert share == sum(common[0] <= ns < common[1] for ns in observed) / len(observed)
    assert 0 <= share <= 1


@given(some_spans, spans)
def test_nobody_overlaps_more_than_the_others_were_there(loads: list[Span], observation: Span) -> None:
    common = common_load(loads)
    assert common[0] <= common[1]
    for load in loads:
        if common[0] < common[1]:
            assert load[0] <= common[0] < common[1] <= load[1]
        if observation[0] < observation[1]:
            assert overlap([observation], common) <= overlap([observation], load)


def test_an_observation_that_runs_backwards_is_refused() -> None:
    with pytest.raises(ValueError, match="from 9 to 3"):
        overlap([(0, 100), (9, 3)], (0, 100))


def worked(*parts: tuple[float, int]) -> list[Reading]:
    """Return readings of a counter at each tenth of a second; a part is its growth per ns and a number of tenths."""
    readings, used = [(0, 0.0)], 0.0
    for rate, tenths in parts:
        for _ in range(tenths):
            used += rate * 10**8
            readings.append((readings[-1][0] + 10**8, used))
    return readings


SECOND = 10**9
FIRST, SECOND_HALF = [(0, SECOND)], [(SECOND, 2 * SECOND)]


def test_work_beside_others() -> None:
    both, halves = (0, 2 * SECOND), [(0, SECOND // 2), *SECOND_HALF]
    for readings, own, claimed, others, expected in (
        # The tenant works in its own second, and rests in the other tenant's.
        (worked((1, 10), (0, 10)), FIRST, both, SECOND_HALF, (1, 0, 1, 1)),
        # It goes on working; if both are observed at once there is no time beside its own observations.
        (worked((0.5, 20)), FIRST, both, SECOND_HALF, (0.5, 0.5, 1, 1)),
        (worked((0.5, 20)), FIRST, both, FIRST, (0.5, 0, 0, 1)),
        # It need not work in a time that it does not claim.
        (worked((1, 10), (0, 10)), FIRST, (0, SECOND), SECOND_HALF, (1, 0, 0, 1)),
        # It rests between its own observations, while the others' overlapping spans go on.
        (worked((1, 5), (0, 5), (1, 10)), halves, both, [*FIRST, (SECOND // 2, 2 * SECOND)], (1, 0, 0.5, 2)),
    ):
        found = work_beside(readings, own, claimed, others)
        assert (found.own, found.beside) == pytest.approx(expected[:2], abs=1e-6)
        assert (found.beside_s, found.observed_s) == expected[2:]


def test_work_without_readings_or_observations_is_unknown() -> None:
    assert work_beside([(0, 0.0)], FIRST, (0, SECOND), FIRST) is None
    assert work_beside(worked((1, 10)), [], (0, SECOND), FIRST) is None
    shares = {(1, 0.25, 2, 4): 0.375, (1, 2, 2, 4): 0, (0, 0, 2, 4): 0, (1, 0, 0, 0): 0}
    assert {numbers: WorkBeside(*numbers).idle_share for numbers in shares} == shares
