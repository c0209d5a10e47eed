"""The suite's score: a weighted geometric mean that knows what is missing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.interference import suite_score
from cotenant.stats.launches import half_width

ratios = st.lists(st.floats(0.1, 10), min_size=1, max_size=8)
Rates = dict[str, dict[int, float]]


def by_uid(*rates: float) -> dict[int, float]:
    return dict(enumerate(rates))


@given(ratios)
def test_of_one_launch_each_it_is_the_geometric_mean(values: list[float]) -> None:
    targets = {str(index): 100.0 for index in range(len(values))}
    rates = {str(index): {0: 100 * value} for index, value in enumerate(values)}
    found = suite_score(rates, targets)
    assert found.value == pytest.approx(math.prod(values) ** (1 / len(values)))
    assert found.interval is None


def test_weights_count() -> None:
    found = suite_score({"a": {0: 2.0}, "b": {0: 16.0}}, {"a": 1.0, "b": 1.0}, {"a": 3.0})
    assert found.value == pytest.approx((2**3 * 16) ** 0.25)


def test_what_is_missing_is_named_and_not_a_zero() -> None:
    found = suite_score({"a": {0: 2.0}, "b": {}}, {"a": 1.0, "b": 1.0, "c": 1.0})
    assert found.value == pytest.approx(2)
    assert found.present == ("a",)
    assert found.missing == ("b", "c")
    assert suite_score({}, {"a": 1.0}).value is None


def test_launches_without_noise_have_an_interval_of_no_width() -> None:
    assert suite_score({"a": by_uid(2.0, 2.0, 2.0)}, {"a": 1.0}).interval == pytest.approx((2, 2))


@pytest.mark.parametrize(("targets", "weights"), [({"a": 0.0}, {}), ({"a": 1.0}, {"a": -1.0})])
def test_what_cannot_be_weighed_is_refused(targets: dict[str, float], weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="no positive number"):
        suite_score({"a": {0: 1.0}}, targets, weights)


def test_the_interval_is_that_of_the_uids_weighted_means() -> None:
    rates = {"a": by_uid(2.0, 2.2, 2.1), "b": {2: 6.5, 0: 5.0, 1: 6.0}}
    found = suite_score(rates, {"a": 1.0, "b": 3.0}, {"a": 3.0})
    means = [0.75 * math.log(rates["a"][uid]) + 0.25 * math.log(rates["b"][uid] / 3) for uid in range(3)]
    half = half_width(means)
    assert half is not None
    center = sum(means) / 3
    assert found.value == pytest.approx(math.exp(center))
    assert found.interval == pytest.approx((math.exp(center - half), math.exp(center + half)))


def test_launches_of_other_uids_move_the_value_and_narrow_nothing() -> None:
    rates = {"a": by_uid(2.0, 2.2, 2.1), "b": by_uid(5.0, 6.0, 6.5)}
    whole = suite_score(rates, {"a": 1.0, "b": 1.0})
    more = suite_score(rates | {"a": rates["a"] | {7: 4.0}}, {"a": 1.0, "b": 1.0})
    assert whole.interval is not None
    assert more.interval is not None
    assert more.value == pytest.approx(math.sqrt((2.0 * 2.2 * 2.1 * 4.0) ** (1 / 4) * (5.0 * 6.0 * 6.5) ** (1 / 3)))
    assert more.interval[1] / more.interval[0] == pytest.approx(whole.interval[1] / whole.interval[0])


def test_uids_that_not_every_job_has_give_no_interval() -> None:
    rates = {"a": by_uid(2.0, 2.1, 2.2, 2.0), "b": {2: 5.0, 3: 5.1, 4: 5.2, 5: 5.3}}
    found = suite_score(rates, {"a": 1.0, "b": 1.0})
    assert found.value is not None
    assert found.interval is None


def drawn(generator: np.random.Generator, shared: float, uids: int, kept: float = 1) -> Rates:
    """Rates of eight jobs, true 1: each uid has a state common to all of them, of jobs but the first some are lost."""
    state = generator.normal(0, shared, uids)
    logs = state + generator.normal(0, 1, (8, uids)) * np.array([[0.01, 0.03, 0.002, 0.01, 0.02, 0.01, 0.05, 0.01]]).T
    there = [range(uids), *(range(max(3, round(kept * uids))) for _ in range(7))]
    return {str(job): {uid: math.exp(logs[job, uid]) for uid in there[job]} for job in range(8)}


def coverage(shared: float, uids: int, draws: int, kept: float = 1) -> float:
    generator, covered = np.random.default_rng(5), 0
    for _ in range(draws):
        interval = suite_score(drawn(generator, shared, uids, kept), {str(job): 1.0 for job in range(8)}).interval
        assert interval is not None
        covered += interval[0] <= 1 <= interval[1]
    return covered / draws


def test_the_interval_covers_what_it_says_where_a_uids_jobs_share_the_machine() -> None:
    assert 0.93 <= coverage(shared=0.03, uids=5, draws=1000) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("uids", [3, 5, 10])
@pytest.mark.parametrize("shared", [0.0, 0.01, 0.05])
def test_the_interval_covers_whatever_is_shared(shared: float, uids: int) -> None:
    assert 0.93 <= coverage(shared, uids, draws=2000) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0.0, 0.05])
def test_with_lost_launches_the_interval_is_cautious(shared: float) -> None:
    assert coverage(shared, uids=8, draws=2000, kept=0.5) >= 0.93
