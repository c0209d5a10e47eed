"""Comparison: verdicts from intervals, an honest UNCLEAR, and A/A runs that hardly ever alarm."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cotenant.stats.comparison import Verdict, aa_noise, compare, margin_of

rates = st.lists(st.floats(1.0, 1e4), min_size=2, max_size=8)
NEAR = [100.0, 101, 99, 100.4, 99.7]


def times(factor: float, launches: list[float] | None = None) -> list[float]:
    return [factor * one for one in launches or NEAR]


@pytest.mark.parametrize(
    ("b", "verdict"),
    [
        (times(1.06), Verdict.FASTER),
        (times(0.94), Verdict.SLOWER),
        (times(1.001), Verdict.SAME),
        (times(1.02), Verdict.UNCLEAR),
        (times(0.5)[:4], Verdict.UNCLEAR),
        (times(0.5)[:1], Verdict.UNCLEAR),
    ],
    ids=["faster", "slower", "same", "at the margin", "four launches", "one launch"],
)
def test_the_interval_against_the_margin_is_the_verdict(b: list[float], verdict: Verdict) -> None:
    found = compare(NEAR, b)
    assert found.verdict is verdict
    assert (found.launches_needed is not None) == (verdict is Verdict.UNCLEAR and found.ratio < 1.01)


def test_an_unclear_one_says_how_many_launches_would_settle_it() -> None:
    noisy = [100.0, 104, 96, 102, 98]
    found = compare(noisy, times(0.95, noisy))
    assert found.verdict is Verdict.UNCLEAR
    assert found.launches_needed is not None
    more = np.tile(noisy, math.ceil(found.launches_needed / 5) + 1).tolist()
    assert compare(more, times(0.95, more)).verdict is Verdict.SLOWER


def test_at_the_very_border_no_number_of_launches_would_do() -> None:
    assert compare(NEAR, times(1.02)).launches_needed is None


@given(rates, rates)
def test_it_is_welchs_interval(a: list[float], b: list[float]) -> None:
    found = compare(a, b)
    log_a, log_b = np.log(a), np.log(b)
    if np.ptp(log_a) < 1e-9 or np.ptp(log_b) < 1e-9:
        return
    interval = stats.ttest_ind(log_b, log_a, equal_var=False).confidence_interval(0.95)
    assert found.interval is not None
    assert [math.log(one) for one in found.interval] == pytest.approx([interval.low, interval.high], abs=1e-9)
    assert found.ratio == pytest.approx(float(stats.gmean(b) / stats.gmean(a)))


@given(rates, rates)
def test_turned_round_it_says_the_opposite(a: list[float], b: list[float]) -> None:
    there, back = compare(a, b), compare(b, a)
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    assert back.verdict is opposite.get(there.verdict, there.verdict)
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.p_rank == pytest.approx(there.p_rank)


def test_ranks_are_refused_where_they_could_not_say_anything() -> None:
    assert compare([1.0, 2, 3], [4.0, 5, 6]).p_rank is None
    found = compare([1.0, 2, 3, 4], [5.0, 6, 7, 8]).p_rank
    assert found == pytest.approx(2 / math.comb(8, 4))
    assert compare([1.0, 2, 3, 4], [4.0, 6, 7, 8]).p_rank is None


def test_equal_launches_without_noise_are_the_same() -> None:
    assert compare([5.0] * 5, [5.0] * 5).verdict is Verdict.SAME
    assert compare([5.0] * 5, [4.0] * 5).verdict is Verdict.SLOWER
    assert compare([5.0] * 5, [4.0] * 5).p_slower == 0
    assert compare([5.0] * 5, [5.0] * 5).p_slower == 1


def test_the_margin_grows_with_the_noise_of_an_a_a_run() -> None:
    assert margin_of(None) == margin_of(0.001) == 0.02
    assert margin_of(0.03) == 0.06
    assert aa_noise([math.exp(-0.01), math.exp(0.01)]) == pytest.approx(0.01 * math.sqrt(2))
    with pytest.raises(ValueError, match="noise of one launch"):
        aa_noise([1.0])


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.002, 0.01, 0.03])
def test_an_a_a_run_alarms_in_at_most_one_of_twenty_draws(noise: float) -> None:
    generator = np.random.default_rng(11)
    draws = np.exp(generator.normal(0, noise, (2000, 2, 5)))
    verdicts = [compare(a.tolist(), b.tolist(), margin_of(noise)).verdict for a, b in draws]
    assert sum(one in (Verdict.FASTER, Verdict.SLOWER) for one in verdicts) <= 0.05 * len(verdicts)


@pytest.mark.slow
def test_a_planted_slowdown_is_found_in_nine_of_ten_draws() -> None:
    """Five percent, five launches, one percent of noise."""
    generator = np.random.default_rng(12)
    draws = np.exp(generator.normal(0, 0.01, (2000, 2, 5)))
    found = [compare(a.tolist(), (0.95 * b).tolist()).verdict is Verdict.SLOWER for a, b in draws]
    assert sum(found) >= 0.9 * len(found)
