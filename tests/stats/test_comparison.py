"""Comparison: verdicts from intervals, UNCLEAR where intervals are too wide, and A/A runs that hardly ever alarm."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cotenant.stats.comparison import compare, holm, margin_of, pooled_noise
from cotenant.stats.verdict import Verdict, verdict_of

rates = st.lists(st.floats(1.0, 1e4), min_size=2, max_size=8)
NEAR = [100.0, 101, 99, 100.4, 99.7]


def times(factor: float, launches: list[float] | None = None) -> list[float]:
    return [factor * one for one in launches or NEAR]


def test_the_interval_against_the_margin_is_the_verdict() -> None:
    for b, verdict, settled_by_more in (
        (times(1.06), Verdict.FASTER, False),
        (times(0.94), Verdict.SLOWER, False),
        (times(1.001), Verdict.SAME, False),
        (times(1.02), Verdict.UNCLEAR, False),  # at the margin no number of launches settles it
        (times(0.5)[:4], Verdict.UNCLEAR, True),
        (times(0.5)[:1], Verdict.UNCLEAR, True),
    ):
        comparison = compare(NEAR, b)
        assert comparison.verdict is verdict
        assert (comparison.launches_needed is not None) == settled_by_more
    for rate, verdict, p_slower in ((5.0, Verdict.SAME, 1), (4.0, Verdict.SLOWER, 0)):
        without_noise = compare([5.0] * 5, [rate] * 5)
        assert (without_noise.verdict, without_noise.p_slower) == (verdict, p_slower)


def test_an_unclear_one_says_how_many_launches_would_settle_it() -> None:
    noisy = [100.0, 104, 96, 102, 98]
    unclear = compare(noisy, times(0.95, noisy))
    assert unclear.verdict is Verdict.UNCLEAR
    more = np.tile(noisy, math.ceil(unclear.launches_needed / 5) + 1).tolist()
    assert compare(more, times(0.95, more)).verdict is Verdict.SLOWER


@given(rates, rates)
def test_it_is_welchs_interval(a: list[float], b: list[float]) -> None:
    found = compare(a, b)
    log_a, log_b = np.log(a), np.log(b)
    if np.ptp(log_a) < 1e-9 or np.ptp(log_b) < 1e-9:
        return
    interval = stats.ttest_ind(log_b, log_a, equal_var=False).confidence_interval(0.95)
    not_slower = stats.ttest_ind(log_b + math.log(1.05), log_a, equal_var=False, alternative="less")
    assert compare(a, b, margin=0.05).p_slower == pytest.approx(float(not_slower.pvalue), abs=1e-9)
    assert [math.log(one) for one in found.interval] == pytest.approx([interval.low, interval.high], abs=1e-9)
    assert found.ratio == pytest.approx(float(stats.gmean(b) / stats.gmean(a)))


@settings(max_examples=40)
@given(rates, rates)
def test_turned_round_it_says_the_opposite(a: list[float], b: list[float]) -> None:
    there, back = compare(a, b), compare(b, a)
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    assert back.verdict is opposite.get(there.verdict, there.verdict)
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.p_rank == pytest.approx(there.p_rank)


def test_ranks_are_refused_where_they_could_not_say_anything() -> None:
    assert compare([1.0, 2, 3], [4.0, 5, 6]).p_rank is None
    assert compare([1.0, 2, 3, 4], [4.0, 6, 7, 8]).p_rank is None


def test_the_margin_grows_with_the_noise_of_an_a_a_run() -> None:
    assert margin_of(None) == margin_of(0.001) == 0.02
    assert margin_of(0.03) == 0.06
    assert pooled_noise([[math.exp(-0.01), math.exp(0.01)], [5.0]]) == pytest.approx(0.01 * math.sqrt(2))
    assert pooled_noise([[1.0]]) is None


@given(st.lists(st.integers(1, 99), min_size=8, max_size=10, unique=True), st.integers(4, 5))
def test_the_rank_tests_p_is_counted_over_all_orders(values: list[int], of_a: int) -> None:
    a, b = values[:of_a], values[of_a:]

    def beyond(chosen: set[int]) -> float:
        wins = sum(one < other for one in chosen for other in values if other not in chosen)
        return abs(wins - len(a) * len(b) / 2)

    orders = [set(chosen) for chosen in itertools.combinations(values, len(a))]
    p = sum(beyond(chosen) >= beyond(set(a)) for chosen in orders) / len(orders)
    assert compare([float(one) for one in a], [float(one) for one in b]).p_rank == pytest.approx(p)


@pytest.mark.slow
def test_five_launches_at_one_percent_of_noise() -> None:
    """Equal sides are SAME in about half of the draws and else UNCLEAR; a loss of 5 % is found in nine of ten draws."""
    generator = np.random.default_rng(12)
    draws = np.exp(generator.normal(0, 0.01, (4000, 2, 5)))
    equal = [compare(a.tolist(), b.tolist()).verdict for a, b in draws]
    assert 0.45 <= equal.count(Verdict.SAME) / len(draws) <= 0.6
    assert equal.count(Verdict.FASTER) + equal.count(Verdict.SLOWER) <= 0.005 * len(draws)
    found = [compare(a.tolist(), (0.95 * b).tolist()).verdict is Verdict.SLOWER for a, b in draws]
    assert sum(found) >= 0.9 * len(found)


chances = st.lists(st.floats(0, 1), max_size=12)


def test_the_textbook_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(chances, st.floats(0.001, 0.2))
def test_it_rejects_what_the_step_down_procedure_rejects(p_values: list[float], alpha: float) -> None:
    rejected = set()
    for rank, (p, index) in enumerate(sorted((p, index) for index, p in enumerate(p_values))):
        if p * (len(p_values) - rank) > alpha:
            break
        rejected.add(index)
    assert {index for index, p in enumerate(holm(p_values)) if p <= alpha} == rejected


@given(chances)
def test_it_keeps_the_order_and_never_lowers(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= higher <= 1 for p, higher in zip(p_values, adjusted, strict=True))
    by_p = [higher for _, higher in sorted(zip(p_values, adjusted, strict=True))]
    assert by_p == sorted(by_p)
    with pytest.raises(ValueError, match="p values"):
        holm([*p_values, 1.5])


def test_an_end_on_the_border_itself_is_no_claim() -> None:
    border = math.log1p(0.02)
    assert verdict_of(-0.1, -border, 0.02) is verdict_of(border, 0.1, 0.02) is Verdict.UNCLEAR
    assert verdict_of(-border, 0.0, 0.02) is verdict_of(0.0, border, 0.02) is Verdict.UNCLEAR
