"""A benchmark as a tenant, against a scripted runner."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.runner import Runner
from bench.small import Small
from cotenant.bench import MissingDataError, Run, session
from cotenant.protocol.client import Rendezvous
from cotenant.protocol.messages import SOCKET_VARIABLE, TENANT_VARIABLE

Start = Callable[[Callable[[Runner], None]], Runner]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    opened: list[Rendezvous | None] = []
    connect = Rendezvous.from_environment

    def connect_here(*arguments: Any) -> Rendezvous | None:
        opened.append(connect(*arguments))
        return opened[-1]

    def begin(script: Callable[[Runner], None]) -> Runner:
        monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "s"))
        monkeypatch.setenv(TENANT_VARIABLE, "1")
        monkeypatch.setattr(Rendezvous, "from_environment", connect_here)
        return Runner(tmp_path / "s", script)

    yield begin
    for one in opened:
        if one is not None:
            one.close()


class Counted(Small):
    """Counts its steps, also those nobody measures."""

    steps = 0

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        type(self).steps += 1
        return super().step(run, batch)


def end(runner: Runner) -> None:
    runner.say("stop")
    runner.hear("record")


def test_the_whole_conversation(start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    t0_ns: list[int] = []

    def script(runner: Runner) -> None:
        runner.hear("ready")
        assert runner.kinds() == ["hello", "begin", "ready"]
        t0_ns.append(runner.go(number=2, repeat=4, delay_ns=100_000_000))
        runner.hear("done")
        at_done = Counted.steps
        while Counted.steps < at_done + 3:  # the cool-down goes on until STOP
            assert runner.kinds()[-1] == "done"
        end(runner)

    Counted.steps = 0
    runner = start(script)
    assert session.main(Counted, ["--repeat", "9", "-b", "5", "--report", str(tmp_path / "mine.json")]) == 0
    runner.join()
    assert runner.kinds() == ["hello", "begin", "ready", *["observation"] * 4, "done", "record"]
    hello, begin, ready, *observations, _, last = (message.fields for message in runner.heard)
    assert (hello["tenant"], hello["rank"], hello["world"]) == (1, 0, 1)
    assert (ready["number"], ready["repeat"], ready["skip"], len(ready["warm_up_ns"])) == (3, 9, 3, 3)
    assert [one["index"] for one in observations] == [0, 1, 2, 3]
    assert {one["items"] for one in observations} == {10}
    assert observations[0]["start_ns"] >= t0_ns[0]
    for one, following in itertools.pairwise(observations):
        assert one["start_ns"] < one["end_ns"] <= following["start_ns"]
        assert one["data_wait_ns"] == 0  # Its batch is resident.
        assert one["event_ns"] is None
    record = last["record"]
    assert (record["number"], record["repeat"], begin["work"]["arguments"]["repeat"]) == (2, 4, 9)
    assert record["load_end_ns"] > observations[-1]["end_ns"]
    assert (record["losses_checked"], record["losses_non_finite"]) == (8, 0)
    assert (len(record["batch_loss"]), len(record["epoch_loss"])) == (8, 4)
    assert record["observed"] | {"threads": 0} == {
        "dtype": "fp32",
        "optimizers": [{"name": "SGD", "package": "torch", "fused": False, "weights": "fp32", "stepped": "fp32"}],
        "device": "cpu",
        "world_size": 1,
        "flops_reducible": 0,
        "books_every": 1,
        "item_is_row": True,
        "updates": 8,
        "updates_credited": 8,
        "flops_per_step": 2 * 2 * 5 * 3 * 2,
        "flops_uncounted": [],
        "compiled": False,
        "threads": 0,
    }
    assert not (tmp_path / "mine.json").exists()
    assert capsys.readouterr().out.count("| ETA: ") == 4


def test_observations_end_when_the_runner_has_seen_enough(start: Start) -> None:
    """The one that it is in when it hears so is finished; the record names what was done."""

    class Told(Small):
        steps = 0

        def step(self, run: Run, batch: Any) -> torch.Tensor | None:
            Told.steps += 1
            if Told.steps == 3 + 2 * 3 + 1:  # the warm-up, and the first step of the fourth observation
                runner.say("enough")
            return super().step(run, batch)

    def script(runner: Runner) -> None:
        runner.hear("ready")
        runner.go(number=2, repeat=9)
        runner.hear("done")
        end(runner)

    runner = start(script)
    assert session.main(Told, []) == 0
    runner.join()
    assert runner.kinds()[3:] == [*["observation"] * 4, "done", "record"]
    record = runner.heard[-1].fields["record"]
    assert (record["number"], record["repeat"], record["losses_checked"]) == (2, 4, 8)


def test_losses_that_are_not_finite_are_told_and_the_runner_judges(start: Start) -> None:
    class Exploding(Small):
        def step(self, run: Run, batch: Any) -> torch.Tensor:
            return torch.tensor(float("nan"))

    def script(runner: Runner) -> None:
        runner.hear("ready")
        runner.go(2, 3)
        end(runner)

    runner = start(script)
    assert session.main(Exploding, []) == 0
    runner.join()
    record = runner.heard[-1].fields["record"]
    assert (record["losses_checked"], record["losses_non_finite"]) == (6, 6)
    assert record["batch_loss"] == [None] * 6
    assert record["epoch_loss"] == [None] * 3


def vanish_before_ready(runner: Runner) -> None:
    runner.hear("hello")


def vanish_before_go(runner: Runner) -> None:
    runner.hear("ready")


def vanish_unheard(runner: Runner) -> None:
    """Leave with bytes unread, as one that was killed does: the other end sees a reset."""
    runner.hear("ready")
    runner.go(1, 3)


def vanish_in_the_cool_down(runner: Runner) -> None:
    runner.hear("ready")
    runner.go(1, 3)
    runner.hear("done")


@pytest.mark.parametrize(
    "script",
    [vanish_before_ready, vanish_before_go, vanish_unheard, vanish_in_the_cool_down],
    ids=lambda one: one.__name__,
)
def test_a_runner_that_vanishes(
    start: Start, script: Callable[[Runner], None], capsys: pytest.CaptureFixture[str]
) -> None:
    runner = start(script)
    assert session.main(Small, ["--repeat", "3"]) == 1
    runner.join()
    error = capsys.readouterr().err
    assert error.startswith("Small: ")
    assert "Traceback" not in error


def test_no_runner_at_the_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "nobody"))
    monkeypatch.setenv(TENANT_VARIABLE, "0")
    assert session.main(Small, []) == 1
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert shown.out == ""


def hear_the_failure(runner: Runner) -> None:
    runner.hear("failed")


@pytest.mark.parametrize(
    "error, outcome, status",
    [
        (torch.OutOfMemoryError("CUDA out of memory."), "device_out_of_memory", 1),
        (MissingDataError("There is no set."), "missing_data", 1),
        (ModuleNotFoundError("No module named 'ale_py.roms'", name="ale_py.roms"), "missing_package", 1),
        (KeyboardInterrupt(), "interrupted", 130),
        (ZeroDivisionError("by zero"), "failed", 1),
    ],
)
def test_failures_are_told(start: Start, error: BaseException, outcome: str, status: int) -> None:
    class Failing(Small):
        def build(self, run: Run) -> None:
            raise error

    runner = start(hear_the_failure)
    assert session.main(Failing, []) == status
    runner.join()
    assert runner.kinds() == ["hello", "begin", "failed"]
    assert "batch_size" in runner.heard[1].fields["work"]["arguments"]
    assert runner.heard[-1].fields["outcome"] == outcome


def test_wrong_usage_is_told(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    runner = start(hear_the_failure)
    assert session.main(Small, ["--bach-size", "3"]) == 2
    runner.join()
    assert runner.heard[-1].fields == {
        "outcome": "failed",
        "message": "This benchmark knows no argument '--bach-size'. Did you mean '--batch-size'?",
    }
    assert "Traceback" not in capsys.readouterr().err
