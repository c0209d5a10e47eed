"""How long a suite takes: estimated beforehand, and kept by measuring less where time is short."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from cotenant.launch import duration
from cotenant.launch.design.designs import ALL_AT_ONCE, InBlocks, InDuet, InPairs
from cotenant.launch.duration import (
    CONTEXTS_S,
    KEPT_BACK_S,
    LEAST_PART,
    MOST_S,
    STARTING_S,
    Pace,
    crowd_words,
    estimates_s,
    slowness,
    usual_s,
)
from cotenant.launch.limits import Limits


def start(tenants: int = 2, *, devices: int = 0, **more: Any) -> Any:
    spec = SimpleNamespace(slice=SimpleNamespace(accelerators=range(devices)))
    usual = {"design": InBlocks(), "baseline": None, "sharers": 1, "goes_on": ()}
    return SimpleNamespace(specs=[spec] * tenants, **usual | more)


BARE = [*[start()] * 16, *[start(1, design=ALL_AT_ONCE)] * 5]


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_slowness_is_compile_time_relative_to_the_usual_time() -> None:
    # Within half a second it compiles 1 and 3 times.
    slow, fast = (slowness(itertools.count(0.0, step).__next__) for step in (0.25, 0.125))
    assert slow == pytest.approx(3 * fast)


def test_a_launch_takes_its_start_and_what_it_measures() -> None:
    assert estimates_s([start()], Limits(), 1.0) == [STARTING_S + 15]
    assert estimates_s([start()], Limits(budget_s=4.0), 2.0) == [2 * STARTING_S + 4]
    assert estimates_s([start(16, sharers=8)], Limits(), 1.0) == [8 * STARTING_S + 16 * 7.5]
    counted = start(design=ALL_AT_ONCE, goes_on=(object(),))
    assert estimates_s([counted], Limits(at_least_s=10.0), 1.0) == [STARTING_S + 10 + 2]
    pairs = InPairs(((0, 1), (0, 2), (1, 2)))
    assert estimates_s([start(3, design=pairs)], Limits(), 1.0) == [STARTING_S + 3 * 15]
    assert estimates_s([start(sharers=2, design=InDuet())], Limits(), 1.0) == [2 * STARTING_S + 8]
    at_least = Limits(settle_s=3.0, at_least_s=10.0)
    on_device = start(1, design=ALL_AT_ONCE, devices=1)
    assert estimates_s([on_device], at_least, 1.0) == [STARTING_S + CONTEXTS_S + 13]
    # Its job says how many observations there are, and nobody how long one takes.
    assert estimates_s([start(design=ALL_AT_ONCE)], Limits(), 1.0) == [None]


def test_who_shares_a_processor_hears_when_go_comes() -> None:
    assert crowd_words([start(16, sharers=8), *BARE], 2.0) == (
        f"8 users import torch on each processor: some {16 * STARTING_S:.0f} s until GO in each launch."
    )


def estimated_s(times: float) -> float:
    pace = Pace(MOST_S, times, Clock())
    return sum(each or 0 for each in estimates_s(BARE, Limits(), times, pace))


def test_a_bare_run_is_estimated_longer_on_a_slower_processor() -> None:
    assert estimated_s(1.0) == pytest.approx(21 * STARTING_S + sum(map(usual_s, BARE)))
    assert estimated_s(1.0) < estimated_s(4.0) <= MOST_S
    # Where importing alone takes longer, it says how long.
    assert estimated_s(20.0) > MOST_S


@pytest.mark.parametrize("times", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("wrong", [0.5, 1.0, 2.0])
def test_a_run_ends_in_time_although_starts_were_misestimated(times: float, wrong: float) -> None:
    clock = Clock()
    pace, began_s = Pace(MOST_S, times, clock), clock.now_s
    for place, each in enumerate(BARE):
        limits = pace.limits(Limits(settle_s=1.0), BARE[place:])
        assert limits.settle_s == 1.0
        assert limits.budget_s is not None
        assert LEAST_PART * usual_s(each) <= limits.budget_s <= usual_s(each)
        started_s = wrong * duration.starting_s(each, times)
        clock.now_s += started_s + limits.budget_s
        pace.took(each, started_s)
    # The first one is launched before anything is known.
    least_s = wrong * times * STARTING_S * len(BARE) + LEAST_PART * sum(map(usual_s, BARE))
    assert clock.now_s - began_s <= max(MOST_S - KEPT_BACK_S, least_s) + usual_s(BARE[0])


def test_what_one_launch_takes_too_long_others_measure_less() -> None:
    clock = Clock()
    pace = Pace(MOST_S, 1.0, clock)
    assert pace.limits(Limits(), BARE).budget_s == 15
    clock.now_s += 300
    assert 15 * LEAST_PART < (pace.limits(Limits(), BARE[1:]).budget_s or 0) < 15
