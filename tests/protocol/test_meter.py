"""The conversation from READY to the record, with a runner that is made up."""

from __future__ import annotations

import time
from typing import Any

import pytest

from cotenant.protocol.meter import DONE, MEASURED, OVER, WARM_UP, Meter

LATER_NS = 20_000_000


class Scripted:
    """Gives GO for `repeat` observations, LATER_NS ahead, and has enough after some; keeps all that it hears."""

    settle_ns, made, warms_up_alone = 7, 0, False

    def __init__(self, repeat: int = 3, enough: int = 99) -> None:
        self.said: list[Any] = []
        self._repeat, self._enough = repeat, enough

    def __getattr__(self, kind: str) -> Any:
        def say(*told: Any, **fields: Any) -> Any:
            self.said.append((kind, *told, *fields.values()))
            return told[0] if told else None

        return say

    def await_go(self) -> tuple[int, int, int]:
        self.t0_ns = time.perf_counter_ns() + LATER_NS
        return self.t0_ns, 2, self._repeat

    def enough(self) -> bool:
        return sum(kind == "observation" for kind, *_ in self.said) >= self._enough

    def stopped(self) -> bool:
        return True


@pytest.mark.parametrize(("enough", "made"), [(99, 3), (2, 2)])
def test_the_conversation_in_its_order(enough: int, made: int) -> None:
    runner = Scripted(enough=enough)
    meter = Meter(runner, {"item": "row"})
    assert meter.phase == WARM_UP
    meter.ready(2, 9, 1, [5])
    assert time.perf_counter_ns() >= runner.t0_ns
    assert (meter.number, meter.repeat, meter.settled_ns) == (2, 3, runner.t0_ns + 7)
    for index in meter.observations():
        assert (meter.phase, meter.made) == (MEASURED, index)
        meter.observed(index, index + 1, 4.0, event_ns=None)
    assert (meter.phase, meter.made) == (DONE, made)
    assert meter.record(11, {"item": "row", "load_end_ns": 1}) == {"item": "row", "load_end_ns": 11}
    assert meter.phase == OVER
    observations = [("observation", index, 4.0, index, index + 1, 0, None) for index in range(made)]
    record = ("record", {"item": "row", "load_end_ns": 11})
    assert runner.said == [("begin", {"item": "row"}), ("ready", 2, 9, 1, [5]), *observations, ("done",), record]


def test_observations_that_are_given_up_are_not_done() -> None:
    runner = Scripted()
    meter = Meter(runner, {})
    meter.ready(2, 9, 1, [])
    for _ in meter.observations():
        break
    meter.failed("The run failed.")
    assert [kind for kind, *_ in runner.said] == ["begin", "ready", "failed"]
    assert meter.phase == OVER


def test_a_later_start_makes_what_is_left() -> None:
    runner = Scripted()
    runner.made = 2
    meter = Meter(runner, {})
    meter.ready(2, 9, 1, [])
    for index in meter.observations():
        meter.observed(index, index + 1, 4.0)
    assert [said[:2] for said in runner.said[2:]] == [("observation", 2), ("done",)]
