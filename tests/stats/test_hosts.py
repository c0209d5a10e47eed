"""Hosts held against their like: equal ones are not named, a slower one is, and one broken host moves nobody else's."""

from __future__ import annotations

import numpy as np
import pytest

from cotenant.stats.hosts import Rates, host_rates, usual


def hosts(
    seed: int,
    count: int = 4,
    jobs: int = 6,
    launches: int = 1,
    noise: float = 0.02,
    slow: float = 1.0,
    apart: float = 0.0,
) -> dict[str, Rates]:
    """Return the rates of hosts that differ by nature by `apart`; the first one has `slow` times its rate."""
    draw = np.random.default_rng(seed)
    made: dict[str, Rates] = {}
    for host in range(count):
        level = np.exp(draw.normal(0, apart)) * (1.0 if host else slow)
        made[f"n{host}"] = {
            (job,): {uid: 100.0 * (job + 1) * level * np.exp(draw.normal(0, noise)) for uid in range(launches)}
            for job in range(jobs)
        }
    return made


def named(of: dict[str, Rates]) -> list[str]:
    return [host for host, rate in host_rates(of).items() if rate.slower]


@pytest.mark.parametrize(
    ("count", "jobs", "launches"),
    [(2, 10, 1), (8, 1, 5), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((8, 3, 2), (32, 10, 1)))],
)
def test_equal_hosts_are_named_in_at_most_5_percent_of_draws(count: int, jobs: int, launches: int) -> None:
    assert sum(bool(named(hosts(seed, count, jobs, launches))) for seed in range(200)) <= 10


@pytest.mark.parametrize(
    ("count", "jobs", "launches"), [(2, 10, 1), (8, 1, 6), pytest.param(8, 10, 1, marks=pytest.mark.slow)]
)
def test_a_host_a_tenth_slower_is_named_alone(count: int, jobs: int, launches: int) -> None:
    found = [named(hosts(seed, count, jobs, launches, slow=0.9)) for seed in range(100)]
    assert found.count(["n0"]) >= 90
    assert all(of in ([], ["n0"]) for of in found)


def test_hosts_that_differ_by_nature_are_seldom_named() -> None:
    """The others' spread counts as noise, else a third of such hosts would be slower by more than 2 %."""
    assert sum(bool(named(hosts(seed, 8, 10, apart=0.02))) for seed in range(200)) <= 10


def test_a_relative_rate_has_an_interval_over_jobs_or_launches() -> None:
    rates = host_rates(hosts(1, slow=0.9))
    slow, equal = rates["n0"], rates["n1"]
    assert (slow.n, slow.over, slow.slower, equal.slower) == (6, "jobs", True, False)
    assert slow.interval[0] < 0.9 < slow.interval[1] < 0.95
    few = host_rates(hosts(1, jobs=2, launches=4, slow=0.9))["n0"]
    assert (few.n, few.over, few.slower) == (8, "launches", True)
    once = host_rates(hosts(1, jobs=1, slow=0.5))["n0"]
    assert (once.n, once.interval, once.slower) == (1, None, False)


def test_only_jobs_and_repetitions_on_several_hosts_count() -> None:
    own: dict[str, Rates] = {
        "a": {("x",): {0: 1.0}, ("y",): {3: 1.0}},
        "b": {("x",): {0: 2.0, 1: 9.0}, ("y",): {4: 1.0}},
    }
    found = host_rates(own)
    assert found["a"].ratio == pytest.approx(0.5)
    assert found["b"].ratio == pytest.approx(2.0)
    assert {rate.n for rate in found.values()} == {1}
    assert host_rates({"a": {("x",): {0: 1.0}}, "b": {}}) == {}


def test_the_usual_count_is_that_of_most_and_of_two_the_higher() -> None:
    assert usual([8, 7, 8]) == 8
    assert usual([7, 8]) == 8
    assert usual([8, 7, 7]) == 7


def test_the_usual_rate_of_three_hosts_is_their_median() -> None:
    def ratio(*rates: float) -> float:
        alike: dict[str, Rates] = {f"n{at}": {("x",): {0: rate}} for at, rate in enumerate(rates)}
        return host_rates(alike)["n0"].ratio

    assert ratio(1.0, 2.0) == pytest.approx(0.5)
    assert ratio(1.0, 2.0, 4.0) == pytest.approx(0.5)
    assert ratio(3.0, 2.0, 4.0) == pytest.approx(1.0)
