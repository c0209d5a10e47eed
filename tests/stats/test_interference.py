"""Ratios of rates together to rates alone, measures of mixes, efficiencies, scores: laws, by hand, and over draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cotenant.stats.comparison import compare
from cotenant.stats.describe import describe
from cotenant.stats.interference import (
    MixMeasures,
    Rates,
    efficiency,
    energy_over_alone,
    interval_of_quotient,
    log_ratios,
    mean_kept,
    mix_measures,
    rate_ratio,
    suite_score,
)
from cotenant.stats.kept import Kept
from cotenant.stats.launches import across_launches, half_width

rates = st.floats(1e-3, 1e6)
Sides = tuple[dict[int, float], dict[int, float]]


def mean_of(jobs: list[Sides]) -> Kept:
    return mean_kept((rate_ratio(*sides), log_ratios(*sides)) for sides in jobs)


pairs = st.dictionaries(st.integers(0, 50), st.tuples(rates, rates), min_size=1, max_size=12)


def test_the_interval_of_a_quotient_by_hand_and_over_draws() -> None:
    # On logarithms 0.3 up on one side and 0.4 down on the other make 0.5, as the root of the sum of squares.
    up, down = math.exp(0.3), math.exp(-0.4)
    low, high = interval_of_quotient(80.0, (80 * down, 80 * up), 100.0, (100 * down, 100 * up))
    assert (math.log(low / 0.8), math.log(high / 0.8)) == (pytest.approx(-0.5), pytest.approx(0.5))
    assert interval_of_quotient(80.0, (80.0, 80.0), 100.0, (100.0, 100.0)) == pytest.approx((0.8, 0.8))
    with pytest.raises(ValueError, match="ends of intervals"):
        interval_of_quotient(80.0, (0.0, 90.0), 100.0, (90.0, 110.0))
    # With few observations the noise of the rate alone counts: without it less than 85 % of the draws are covered.
    rng, draws = np.random.default_rng(17), 400
    covered = alone_taken_as_exact = 0
    for _ in range(draws):
        together, lone = (describe([1.0] * n, list(rng.lognormal(0, 0.05, n))) for n in (15, 6))
        low, high = interval_of_quotient(together.median, together.interval, lone.median, lone.interval)
        covered += low <= 1 <= high
        low, high = (end / lone.median for end in together.interval)
        alone_taken_as_exact += low <= 1 <= high
    assert covered / draws > 0.95
    assert alone_taken_as_exact / draws < 0.85


def test_fewer_than_three_launches_give_no_interval() -> None:
    two = rate_ratio({0: 80.0, 1: 45.0}, {0: 100.0, 1: 50.0})
    assert two == Kept(pytest.approx(math.sqrt(0.8 * 0.9)), None, 2, "launches")
    assert rate_ratio({0: 90.0}, {0: 100.0}) == Kept(pytest.approx(0.9), None, 1, "launches")
    assert rate_ratio({}, {0: 1.0}) is rate_ratio({0: 1.0}, {}) is mean_kept([]) is None
    with pytest.raises(ValueError, match="rates of launches"):
        rate_ratio({0: 0.0}, {0: 1.0})


@given(pairs)
def test_paired_rates_give_the_t_interval_of_log_ratios(both: dict[int, tuple[float, float]]) -> None:
    found = rate_ratio({uid: over for uid, (over, _) in both.items()}, {uid: under for uid, (_, under) in both.items()})
    logs = np.log([over for over, _ in both.values()]) - np.log([under for _, under in both.values()])
    assert math.log(found.value) == pytest.approx(float(logs.mean()), abs=1e-9)
    assert (found.interval is None, found.n, found.over) == (len(both) < 3, len(both), "launches")
    if found.interval is not None and logs.std() > 1e-6:
        expected = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
        assert [math.log(end) for end in found.interval] == pytest.approx(list(map(float, expected)), abs=1e-6)


@given(pairs, st.lists(st.floats(0.1, 10), min_size=51, max_size=51))
def test_what_a_pair_shares_cancels(both: dict[int, tuple[float, float]], state: list[float]) -> None:
    over, under = ({uid: pair[side] for uid, pair in both.items()} for side in (0, 1))
    moved = [{uid: value * state[uid] for uid, value in side.items()} for side in (over, under)]
    assert rate_ratio(*moved).value == pytest.approx(rate_ratio(over, under).value)


def test_only_uids_that_both_sides_have_are_paired() -> None:
    three = rate_ratio({0: 9.0, 1: 9.0, 2: 9.0, 7: 1.0}, {0: 10.0, 1: 10.0, 2: 10.0, 8: 99.0})
    single = rate_ratio({0: 9.0}, {0: 10.0, 1: 20.0, 2: 30.0})
    assert [(each.value, each.n) for each in (three, single)] == [(pytest.approx(0.9), 3), (pytest.approx(0.9), 1)]


@pytest.mark.parametrize("first", [5, 4, 3])
def test_with_too_few_shared_uids_every_launch_counts_as_it_is(first: int) -> None:
    a, b = [10.0, 11.0, 10.5, 9.5, 10.2], [9.0, 9.1, 9.3, 8.8]
    found = rate_ratio({first + at: rate for at, rate in enumerate(b)}, dict(enumerate(a)))
    assert found.n == 4
    expected = compare(a, b)
    assert (found.value, found.interval) == (pytest.approx(expected.ratio), pytest.approx(expected.interval))


UNDER = {0: 1.0, 1: 1.1, 2: 0.98}
PAIRED, APART = ({0: 0.9, 1: 0.95, 2: 0.91}, UNDER), ({5: 0.9, 6: 0.95, 7: 0.91}, UNDER)


def test_the_mean_over_jobs_is_geometric() -> None:
    halved, doubled = (dict.fromkeys(range(3), 0.5), dict.fromkeys(range(3), 1.0)), ({0: 2.0}, {0: 1.0})
    assert mean_of([halved, doubled]) == Kept(pytest.approx(1), None, 2, "jobs")
    mean, one = mean_of([PAIRED] * 4), rate_ratio(*PAIRED)
    assert (mean.interval, mean.n, mean.over) == (pytest.approx(one.interval), 3, "launches")


def test_the_interval_of_a_mean_uses_only_uids_of_every_job() -> None:
    many = dict.fromkeys(range(6), 0.9), dict.fromkeys(range(6), 1.0)
    few = {uid: 0.8 + uid / 100 for uid in range(3)}, dict.fromkeys(range(3), 1.0)
    other = {uid: 0.8 + uid / 100 for uid in range(1, 4)}, dict.fromkeys(range(1, 4), 1.0)
    found, without = mean_of([many, few]), mean_of([few, other])
    assert found.value == pytest.approx(math.sqrt(rate_ratio(*many).value * rate_ratio(*few).value))
    assert (found.n, found.interval is None) == (3, False)
    assert (without.n, without.over, without.interval) == (2, "jobs", None)
    over_jobs = mean_of([PAIRED, APART, few])
    logs = [math.log(rate_ratio(*sides).value) for sides in (PAIRED, APART, few)]
    assert (over_jobs.n, over_jobs.over) == (3, "jobs")
    assert math.log(over_jobs.interval[1] / over_jobs.value) == pytest.approx(half_width(logs))


ratios = st.lists(st.floats(0.1, 10), min_size=1, max_size=8)


def by_uid(*rates: float) -> dict[int, float]:
    return dict(enumerate(rates))


@given(ratios)
def test_the_score_of_one_launch_each_is_the_geometric_mean(values: list[float]) -> None:
    targets = {str(index): 100.0 for index in range(len(values))}
    rates = {str(index): {0: 100 * value} for index, value in enumerate(values)}
    found = suite_score(rates, targets)
    assert found.value == pytest.approx(math.prod(values) ** (1 / len(values)))
    assert found.interval is None


def test_a_suite_score_is_weighted_and_names_missing_jobs() -> None:
    weighed = suite_score({"a": {0: 2.0}, "b": {0: 16.0}}, {"a": 1.0, "b": 1.0}, {"a": 3.0})
    assert weighed.value == pytest.approx((2**3 * 16) ** 0.25)
    half = suite_score({"a": by_uid(2.0, 2.0, 2.0), "b": {}}, {"a": 1.0, "b": 1.0, "c": 1.0})
    assert (half.value, half.present, half.missing) == (pytest.approx(2), ("a",), ("b", "c"))
    assert half.interval == pytest.approx((2, 2))
    assert suite_score({}, {"a": 1.0}).value is None


@pytest.mark.parametrize(("targets", "weights"), [({"a": 0.0}, {}), ({"a": 1.0}, {"a": -1.0})])
def test_what_cannot_be_weighed_is_refused(targets: dict[str, float], weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="no positive number"):
        suite_score({"a": {0: 1.0}}, targets, weights)


def test_the_interval_is_that_of_the_uids_weighted_means() -> None:
    rates = {"a": by_uid(2.0, 2.2, 2.1), "b": {2: 6.5, 0: 5.0, 1: 6.0}}
    found = suite_score(rates, {"a": 1.0, "b": 3.0}, {"a": 3.0})
    means = [0.75 * math.log(rates["a"][uid]) + 0.25 * math.log(rates["b"][uid] / 3) for uid in range(3)]
    half = half_width(means)
    center = sum(means) / 3
    assert found.value == pytest.approx(math.exp(center))
    assert found.interval == pytest.approx((math.exp(center - half), math.exp(center + half)))


def test_launches_of_unshared_uids_do_not_narrow_the_interval() -> None:
    rates = {"a": by_uid(2.0, 2.2, 2.1), "b": by_uid(5.0, 6.0, 6.5)}
    whole = suite_score(rates, {"a": 1.0, "b": 1.0})
    more = suite_score(rates | {"a": rates["a"] | {7: 4.0}}, {"a": 1.0, "b": 1.0})
    assert more.value == pytest.approx(math.sqrt((2.0 * 2.2 * 2.1 * 4.0) ** (1 / 4) * (5.0 * 6.0 * 6.5) ** (1 / 3)))
    assert more.interval[1] / more.interval[0] == pytest.approx(whole.interval[1] / whole.interval[0])


def test_uids_that_not_every_job_has_give_no_interval() -> None:
    score = suite_score({"a": by_uid(2.0, 2.1, 2.2, 2.0), "b": {2: 5.0, 3: 5.1, 4: 5.2, 5: 5.3}}, {"a": 1.0, "b": 1.0})
    assert score.value > 0
    assert score.interval is None


@pytest.mark.parametrize("draws", [300, pytest.param(3000, marks=pytest.mark.slow)])
def test_intervals_keep_coverage_where_jobs_share_a_machine(draws: int) -> None:
    generator, covered = np.random.default_rng(7), {"mean": 0, "score": 0}
    for _ in range(draws):
        state, noise = generator.normal(0, 0.03, 5), generator.normal(0, 0.02, (6, 5))
        rates = {str(job): dict(enumerate(of)) for job, of in enumerate(np.exp(state + noise).tolist())}
        under = dict(enumerate(np.exp(generator.normal(0, 0.02, 5)).tolist()))
        found = mean_of([(of, under) for of in rates.values()]), suite_score(rates, dict.fromkeys(rates, 1.0))
        for name, of in zip(covered, found, strict=True):
            covered[name] += of.interval[0] <= 1 <= of.interval[1]
    assert all(0.92 <= count / draws <= 0.98 for count in covered.values()), covered


TENANTS = st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(1e-3, 1e6)), min_size=1, max_size=8)


def measured(together: Mapping[str, Rates], alone: Mapping[str, Rates], slices: float) -> MixMeasures | None:
    shares = [rate_ratio(rates, alone.get(who, {})) for who, rates in together.items()]
    return mix_measures([share for share in shares if share is not None], together, alone, slices)


def of_one(progress: Sequence[float], alone: Sequence[float], slices: float = 1.0) -> MixMeasures:
    rates = {str(at): {0: part * rate} for at, (part, rate) in enumerate(zip(progress, alone, strict=True))}
    return measured(rates, {str(at): {0: rate} for at, rate in enumerate(alone)}, slices)


@given(TENANTS, st.floats(1.0, 8.0))
def test_measures_are_those_of_their_definitions(tenants: list[tuple[float, float]], slices: float) -> None:
    """Rates of different jobs differ by orders of magnitude, and no measure depends on their units."""
    progress, alone = zip(*tenants, strict=True)
    found, unit = of_one(progress, alone, slices), of_one(progress, [1.0] * len(alone), slices)
    assert found.stp.value == pytest.approx(sum(progress))
    assert found.antt.value == pytest.approx(sum(1 / part for part in progress) / len(progress))
    assert found.fairness.value == pytest.approx(min(progress) / max(progress))
    assert found.tax.value == pytest.approx(1 - sum(progress) / slices)
    assert found.worst_slowdown.value == pytest.approx(1 / min(progress))
    assert (unit.stp.value, unit.antt.value) == pytest.approx((found.stp.value, found.antt.value))
    # The harmonic mean of the shares is no greater than the arithmetic one.
    assert found.antt.value >= len(progress) / found.stp.value - 1e-9
    assert 1 / found.worst_slowdown.value <= found.stp.value / len(progress) + 1e-9
    assert found.stp.interval is None


def test_measures_of_mixes_by_hand() -> None:
    turns, free = of_one([0.25] * 4, [1, 10, 100, 1000]), of_one([1.0] * 4, [1, 10, 100, 1000])
    assert (turns.stp.value, turns.antt.value, turns.fairness.value, turns.tax.value) == pytest.approx((1, 4, 1, 0))
    assert (free.stp.value, free.antt.value, free.tax.value) == pytest.approx((4, 1, -3))
    starved = of_one([0.9, 0.9, 0.1], [5, 5, 5])
    assert starved.worst_slowdown.value == pytest.approx(10)
    assert starved.fairness.value == pytest.approx(1 / 9)


def test_only_uids_in_which_every_tenant_has_both_rates_count() -> None:
    together = {"0": {0: 5.0, 1: 5.0, 2: 7.0}, "1": {0: 8.0, 2: 8.0}}
    alone = {"0": {0: 10.0, 1: 10.0, 2: 10.0}, "1": {0: 10.0, 1: 10.0, 3: 10.0}}
    found = measured(together, alone, 2)
    assert (found.stp.n, found.stp.value) == (1, pytest.approx(1.3))
    assert measured(together, {"0": alone["0"]}, 2) is None
    assert measured({}, {}, 2) is None
    with pytest.raises(ValueError, match="rates"):
        measured({"0": {0: 0.0}}, {"0": {0: 1.0}}, 1)


def test_energy_is_relative_to_the_same_items_run_alone() -> None:
    together = {"0": {0: 50.0, 1: 40.0}, "1": {0: 5.0, 2: 5.0}}
    alone_j = {"0": {0: 2.0}, "1": {0: 20.0}}
    measure = energy_over_alone({0: 300.0, 1: 300.0}, together, alone_j)
    assert (measure.value, measure.interval, measure.n) == (pytest.approx(300 / (50 * 2 + 5 * 20)), None, 1)
    assert energy_over_alone({1: 300.0}, together, alone_j) is None
    assert energy_over_alone({0: 300.0}, together, {"0": {0: 2.0}}) is None


def test_the_state_of_the_machine_cancels_in_all_measures() -> None:
    """The machine's state differs by 5 % from uid to uid, and changes the rates together and alone by one factor."""
    draw, states = np.random.default_rng(1), np.exp(np.random.default_rng(2).normal(0, 0.05, 5))
    parts = np.exp(draw.normal(0, 0.01, (2, 5))) * np.array([[0.8], [0.5]])
    alone = {str(at): dict(enumerate((rate * states).tolist())) for at, rate in enumerate((120.0, 3.0))}
    beside = {who: {uid: rate * parts[int(who), uid] for uid, rate in of.items()} for who, of in alone.items()}
    found = measured(beside, alone, 2)
    for measure, of_uids in ((found.stp, parts.sum(axis=0)), (found.antt, (1 / parts).mean(axis=0))):
        expected = across_launches(of_uids.tolist())
        assert (measure.value, measure.interval) == (pytest.approx(expected.rate), pytest.approx(expected.interval))
    assert found.tax.interval == pytest.approx(tuple(1 - end / 2 for end in found.stp.interval[::-1]))


OF_DEVICES = st.lists(st.floats(0.1, 1e9), min_size=1, max_size=2)
ALONE, TOGETHER = [100.0, 50.0, 101.0], [180.0, 400.0, 179.0, 182.0]


def test_an_efficiency_is_a_ratio_of_medians() -> None:
    for devices, rate, value in ((1, 100.0, 1.0), (2, 190.0, 0.95), (4, 300.0, 0.75)):
        assert efficiency(devices, [rate], [100.0]) == Kept(value, None, 1, "launches")
    assert efficiency(4, [20.0] * 3, []) is None
    two = efficiency(2, TOGETHER, ALONE)
    assert (two.value, two.n) == (181 / 200, 3)
    assert efficiency(1, ALONE, ALONE).interval is None
    for alone, together in ((2, 5), (5, 2)):
        assert efficiency(2, [19.0, 19.1, 19.2, 19.0, 19.1][:together], [10.0] * alone).interval is None


def test_an_efficiency_interval_reflects_the_error_of_medians() -> None:
    """The interval is centred on the ratio of medians; that of the geometric means is half as large again."""
    two = efficiency(2, TOGETHER, ALONE)
    low, high = (math.log(end / two.value) for end in two.interval)
    of_means = compare(ALONE, TOGETHER).interval
    half = math.log(of_means[1] / of_means[0]) / 2
    assert (low, high) == pytest.approx((-half * math.sqrt(math.pi / 2), half * math.sqrt(math.pi / 2)))


@pytest.mark.parametrize("launches", [3, 5])
def test_the_interval_of_an_efficiency_covers_what_it_says(launches: int) -> None:
    """Simulated launches on four devices and on one differ by 2 %; the true efficiency is 0.9."""
    random, draws = np.random.default_rng(7), 1000
    noise = np.exp(random.normal(0, 0.02, (draws, 2, launches)))
    held = 0
    for alone, together in noise:
        four = efficiency(4, (360 * together).tolist(), (100 * alone).tolist())
        held += four.interval[0] <= 0.9 <= four.interval[1]
    assert held / draws >= 0.94


@given(st.integers(1, 64), OF_DEVICES, OF_DEVICES, st.floats(0.5, 2.0))
def test_a_faster_machine_scales_the_same(devices: int, rates: list[float], alone: list[float], factor: float) -> None:
    value = efficiency(devices, rates, alone).value
    assert value == median(rates) / (devices * median(alone))
    faster = efficiency(devices, [factor * rate for rate in rates], [factor * rate for rate in alone])
    assert faster.value == pytest.approx(value)


@pytest.mark.parametrize(("devices", "rates"), [(0, [1.0]), (1, []), (2, [0.0]), (1, [-1.0])])
def test_what_is_no_rate_of_devices(devices: int, rates: list[float]) -> None:
    with pytest.raises(ValueError):
        efficiency(devices, rates, [1.0])
