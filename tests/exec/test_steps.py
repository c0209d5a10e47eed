"""A program's steps, told one by one, go through the rendezvous: a runner that is made up hears them."""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from cotenant.exec import steps as steps_module
from cotenant.exec.optimizer import Optimizers, wait_for_device
from cotenant.exec.settings import Settings
from cotenant.exec.steps import LEAST_STEPS, WARM_UP_STEPS, Steps
from cotenant.protocol.client import Rendezvous
from cotenant.protocol.messages import UNSAID


class Told(Rendezvous):
    """A runner that gives GO at once, has enough after so many observations, and stops after so many questions."""

    def __init__(
        self, number: int = 3, repeat: int = 4, enough: int = 99, stops: int = 2, warms_up_alone: bool = False
    ) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []
        self._given, self._enough, self._stops = (number, repeat), enough, stops
        self.settle_ns, self._unsent, self.warms_up_alone = 0, [], warms_up_alone

    def begin(self, work: dict[str, Any]) -> None:
        self.work = work

    def turn(self) -> None:
        self._say("turn")

    def turned(self) -> None:
        self._say("turned")

    def _say(self, kind: str, **fields: Any) -> None:
        self.said.append((kind, fields))

    def observation(self, **fields: Any) -> None:
        self._say("observation", **fields)

    def await_go(self) -> tuple[int, int, int]:
        return time.perf_counter_ns(), *self._given

    def enough(self) -> bool:
        return sum(kind == "observation" for kind, _ in self.said) >= self._enough

    def stopped(self) -> bool:
        self._stops -= 1
        return self._stops < 0

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.said]

    def fields(self, kind: str) -> list[dict[str, Any]]:
        return [fields for of, fields in self.said if of == kind]


ONCE = Settings()


def stepped(runner: Told, count: int, items: float = 1.0, settings: Settings = ONCE, **how: Any) -> Steps:
    """Return the steps of a program that has made so many."""
    steps = Steps(runner, settings, "row", dict, **how)
    for _ in range(count):
        steps.step(items)
    return steps


@pytest.mark.parametrize(("word", "turns"), [("step", ["turn", "turned"]), ("line", [])])
def test_a_program_counted_by_steps_waits_for_its_warm_up_turn(word: str, turns: list[str]) -> None:
    runner = Told(warms_up_alone=True)
    steps = stepped(runner, 1, word=word)
    assert runner.kinds() == turns[:1]
    for _ in range(WARM_UP_STEPS):
        steps.step()
    assert runner.kinds() == [*turns, "ready"]


def test_a_program_is_measured_and_then_sends_its_record() -> None:
    runner = Told()
    steps = Steps(runner, Settings(), "row", lambda: {"observed": {}})
    assert runner.work == {"item": "row"}
    for _ in range(1 + WARM_UP_STEPS):
        assert runner.kinds() == []
        steps.step(2.0)
    (ready,) = runner.fields("ready")
    assert (ready["number"], len(ready["warm_up_ns"])) == (UNSAID, WARM_UP_STEPS)
    for _ in range(3 * 4):
        assert not steps.over
        steps.step(2.0)
    made = runner.fields("observation")
    assert [(row["index"], row["items"]) for row in made] == [(index, 6.0) for index in range(4)]
    assert all(row["end_ns"] <= after["start_ns"] for row, after in pairwise(made))
    while not steps.over:
        steps.step()
    steps.step()
    steps.ended()
    assert runner.kinds() == ["ready", *["observation"] * 4, "done", "record"]
    (record,) = runner.fields("record")
    assert (record["record"]["item"], record["record"]["observed"]) == ("row", {})
    assert record["record"]["load_end_ns"] > made[-1]["end_ns"]
    assert steps.count == 1 + WARM_UP_STEPS + 12 + 3


def test_it_ends_its_observations_where_the_runner_has_enough() -> None:
    runner = Told(enough=2)
    stepped(runner, 1 + WARM_UP_STEPS + 3 * 2)
    assert runner.kinds()[-2:] == ["observation", "done"]


def test_long_steps_are_a_short_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_module, "LONG_WARM_UP_NS", 0)
    runner = Told()
    stepped(runner, 1 + LEAST_STEPS)
    assert len(runner.fields("ready")[0]["warm_up_ns"]) == LEAST_STEPS


def test_items_that_the_device_has_skipped_are_not_credited() -> None:
    runner = Told()
    skipped = iter([0.0] * WARM_UP_STEPS + [0.0, 2.0, 0.0, 5.0])
    stepped(runner, 1 + WARM_UP_STEPS + 12, border=lambda: next(skipped))
    assert [row["items"] for row in runner.fields("observation")] == [3.0, 1.0, 3.0, 0.0]


@pytest.mark.parametrize(
    ("count", "when"), [(4, "before it was measured"), (WARM_UP_STEPS + 5, "while it was measured")]
)
def test_a_program_that_ends_early_says_after_how_many_steps(count: int, when: str) -> None:
    runner = Told()
    steps = stepped(runner, count, word="line")
    steps.ended()
    steps.ended()
    (failed,) = runner.fields("failed")
    assert f"after {count} lines, {when}" in failed["message"]


def test_a_program_started_again_continues_the_count(tmp_path: Path) -> None:
    runner = Told()
    steps = stepped(runner, WARM_UP_STEPS + 3, settings=Settings(directory=str(tmp_path), again=True))
    steps.ended()
    for _ in range(20):
        steps.step()
    assert runner.kinds() == ["ready", *["observation"] * 4, "done", "record"]


def test_one_that_ends_between_done_and_stop_is_measured() -> None:
    runner = Told(stops=99)
    stepped(runner, 1 + WARM_UP_STEPS + 12).ended()
    assert runner.kinds()[-2:] == ["done", "record"]


@pytest.mark.parametrize(("word", "remedy"), [("step", "--item row"), ("line", "--count-line")])
def test_what_counts_nothing_is_told_by_the_flag_that_counts(word: str, remedy: str) -> None:
    runner = Told()
    stepped(runner, WARM_UP_STEPS + 1, items=0.0, word=word)
    assert runner.kinds() == ["failed"]
    assert remedy in runner.fields("failed")[0]["message"]


@pytest.mark.parametrize("kind", ["", "cuda", "xpu", "mps"])
def test_a_device_of_any_kind_is_waited_for(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A border that waits for CUDA alone times how fast an XPU's or an MPS' work is issued."""
    waited: list[str] = []

    def module(of: str) -> SimpleNamespace:
        name = "is_available" if of == "mps" else "is_initialized"
        return SimpleNamespace(**{name: lambda: of == kind}, synchronize=lambda: waited.append(of))

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(**{of: module(of) for of in ("cuda", "xpu", "mps")}))
    wait_for_device()
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    wait_for_device()
    assert waited == [kind] * bool(kind)


class Place(NamedTuple):
    type: str
    index: int | None = None


class Owner:
    """Stands for an optimizer of weights on these devices."""

    def __init__(self, *places: Place) -> None:
        self.param_groups = [{"params": [SimpleNamespace(device=place) for place in places]}]


def test_steps_wait_for_every_device_that_holds_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[tuple[Place, ...]] = []
    cuda = SimpleNamespace(is_initialized=lambda: True, synchronize=lambda *of: waited.append(of))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr("os.register_at_fork", lambda **calls: None)
    monkeypatch.setattr("atexit.register", lambda call: None)
    monkeypatch.setattr("cotenant.exec.optimizer.address", lambda: ("", 0))
    monkeypatch.setattr("cotenant.exec.optimizer.Rendezvous", lambda *at, start: Told())
    monkeypatch.setattr(Settings, "claim", lambda self: True)
    counting, optimizer = Optimizers(None, Settings(), None), Owner(Place("cuda", 1), Place("cpu"), Place("cuda", 2))
    counting._begin(optimizer)
    assert counting._border() == 0.0
    assert sorted(waited) == [(), (Place("cuda", 1),), (Place("cuda", 2),)]
