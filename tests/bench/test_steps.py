"""A task that serves has a time of every step in its observations, and of no other step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

from bench.small import Small, record_of, warmed
from cotenant.bench import Run
from cotenant.bench.device import Device
from cotenant.bench.steps import MarkedSteps


class Serving(Small):
    serves: ClassVar[bool] = True

    def step(self, run: Any, batch: Any) -> torch.Tensor | None:
        self.steps = getattr(self, "steps", 0) + 1
        if self.steps % 10 == 0:
            torch.ones(400, 400) @ torch.ones(400, 400)
        return super().step(run, batch)


@pytest.mark.usefixtures("own_clock")
def test_every_step_of_an_observation_is_timed_and_no_other() -> None:
    loop, _ = warmed(Serving())
    made = [loop.observe(number) for number in (5, 8)]
    loop.load_until(lambda: True)
    assert [len(steps) for steps in loop.steps_ns] == [5, 8]
    for observation, steps in zip(made, loop.steps_ns, strict=True):
        took_ns = observation.end_ns - observation.start_ns
        assert 0.5 * took_ns < sum(steps) <= took_ns
    # Every tenth step is long: after three of the warm-up, that is the seventh of 13.
    times = [ns for steps in loop.steps_ns for ns in steps]
    assert max(range(13), key=times.__getitem__) == 6


def test_a_device_stamps_its_steps_itself() -> None:
    class Event:
        made: ClassVar[list[Event]] = []

        def __init__(self) -> None:
            self.at_ms = 2.0 ** len(self.made)
            self.made.append(self)

        def elapsed_time(self, other: Event) -> float:
            return other.at_ms - self.at_ms

    device: Any = replace(Device(torch.device("cuda")))
    steps = MarkedSteps(lambda run, batch: None, device)
    steps._mark = Event  # type: ignore[method-assign]
    for _ in range(3):
        steps(None, None)
    assert len(Event.made) == 4
    assert steps.times_ns() == [1_000_000, 2_000_000, 4_000_000]


def test_a_record_holds_all_steps_and_their_quantiles(tmp_path: Path) -> None:
    record = record_of(Serving, tmp_path, "--repeat 8 --number 50 --skip 0")
    steps, raw = record["meters"]["steps"], record["observed"]["steps_ns"]
    assert [len(one) for one in raw] == [50] * 8
    times = sorted(ns for one in raw for ns in one)
    assert (steps["n"], steps["p50_ns"], steps["p99_ns"]) == (400, times[199], times[395])
    low, high = steps["p95_interval_ns"]
    assert low <= steps["p95_ns"] <= high
    # One step in ten is long, which p95 shows and the median does not.
    assert steps["p95_ns"] > 3 * steps["p50_ns"]
    plain = record_of(Small, tmp_path)
    assert "steps" not in plain["meters"]
    assert "steps_ns" not in plain["observed"]


@pytest.mark.parametrize("told", ["x", [[]] * 8, [[1, 2]] * 7, [[10**12] * 3] * 8, [[-1]] * 8])
def test_steps_that_do_not_fit_their_observations_are_none(told: Any, tmp_path: Path) -> None:
    class Boasting(Small):
        def build(self, run: Run) -> None:
            super().build(run)
            run.observed["steps_ns"] = told

    assert "steps" not in record_of(Boasting, tmp_path, "--repeat 8 --skip 0")["meters"]
