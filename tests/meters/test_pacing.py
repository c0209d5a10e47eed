"""All meters as one: when they look, the cost of that, and their report of the cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from cotenant.isolation.backend import LiveSlice
from cotenant.meters.meters import MOST_SHARE, Clocks, Meters
from cotenant.meters.sampler import Look, SampleSpread

MS = 1_000_000


@dataclass
class Watch:
    """A clock that stands still unless a test, or a sampler at work, moves it."""

    now_ns: int = 0
    worked_ns: int = 0

    def work(self, nanoseconds: int) -> None:
        self.now_ns += nanoseconds
        self.worked_ns += nanoseconds

    def clocks(self) -> Clocks:
        return Clocks(lambda: self.now_ns, lambda: self.worked_ns)


@dataclass
class Slow:
    """A sampler that works for `cost_ns` at each look."""

    watch: Watch
    cost_ns: int = 0
    name: str = "slow"
    seen: dict[str, Any] = field(default_factory=lambda: {"seen": 1})
    lacks: dict[str, str] = field(default_factory=dict)
    looks: list[int] = field(default_factory=list)

    def start(self, slices: Sequence[LiveSlice]) -> None:
        self.looks.clear()

    def sample(self) -> Look:
        self.looks.append(self.watch.now_ns)
        self.watch.work(self.cost_ns)
        return {("host", self.name): float(len(self.looks))}

    def result(self) -> dict[str, Any]:
        return self.seen

    def absent(self) -> dict[str, str]:
        return self.lacks


def over(seconds: float, cost_ns: int, every_ns: int = 100 * MS) -> tuple[Watch, Slow, dict[str, Any]]:
    """Sample for a while, asked to every 100 ms as a busy launch asks; return the result as well."""
    watch = Watch()
    slow = Slow(watch, cost_ns)
    meters = Meters([slow], clocks=watch.clocks())
    meters.start([])
    while watch.now_ns < seconds * 1e9:
        watch.now_ns += every_ns
        meters.sample()
    return watch, slow, meters.result(0)


def test_it_never_looks_more_than_twice_a_second() -> None:
    _, slow, _ = over(10, cost_ns=10_000)
    gaps = [late - early for early, late in zip(slow.looks, slow.looks[1:-1], strict=False)]
    assert len(slow.looks) > 15
    assert min(gaps) >= 500 * MS


@pytest.mark.parametrize("cost_ns", [1_000, 1 * MS, 10 * MS, 50 * MS])
def test_however_dear_a_look_is_the_runner_stays_quiet(cost_ns: int) -> None:
    watch, slow, _ = over(60, cost_ns)
    # The last look, at the end, is behind the timed part.
    assert (len(slow.looks) - 1) * cost_ns <= MOST_SHARE * watch.now_ns + cost_ns


def test_the_cost_of_looking_is_in_the_result() -> None:
    _, slow, result = over(5, cost_ns=2 * MS)
    sampling = result["sampling"]
    assert sampling["processor_ns"] == {"n": len(slow.looks), "min": 2 * MS, "mean": 2 * MS, "max": 2 * MS}
    assert sampling["wall_ns"] == sampling["processor_ns"]
    assert sampling["window_s"] == pytest.approx(5, abs=0.2)


def test_even_the_shortest_launch_has_one_sample() -> None:
    watch = Watch()
    slow = Slow(watch)
    meters = Meters([slow], clocks=watch.clocks())
    meters.start([])
    meters.sample()
    assert slow.looks == []
    assert meters.result(0)["sampling"]["processor_ns"]["n"] == 1


def test_what_is_absent_is_named_and_leaves_no_empty_meter() -> None:
    watch = Watch()
    there = Slow(watch, name="there")
    missing = Slow(watch, name="missing", seen={}, lacks={"missing": "a better host"})
    meters = Meters([there, missing], {"other": "another library"}, watch.clocks())
    meters.start([])
    result = meters.result(0)
    assert result.keys() == {"there", "sampling", "series", "absent"}
    assert result["absent"] == {"other": "another library", "missing": "a better host"}


def test_the_spread_of_values() -> None:
    spread = SampleSpread()
    assert spread.result() is None
    for value in (-2.0, -4.0, -3.0):
        spread.add(value)
    assert spread.result() == {"n": 3, "min": -4.0, "mean": -3.0, "max": -2.0}
