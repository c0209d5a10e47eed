"""What the harness sees for itself: constant input, and updates that a step was credited with and did not make."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import torch

from bench.small import Small
from cotenant.bench import Run
from cotenant.bench.loader import constant_input
from cotenant.bench.loop import Loop

NUMBERS = torch.arange(32.0)


@pytest.mark.parametrize(
    "batch",
    [
        NUMBERS,
        (NUMBERS, torch.zeros(16)),
        {"pixels": NUMBERS, "boxes": [torch.zeros(4, 4)]},
        (torch.arange(16), torch.arange(16), torch.zeros(16)),
        torch.arange(32),
        torch.zeros(15),
        torch.zeros(100, dtype=torch.bool),
        torch.zeros(100, dtype=torch.complex64),
        torch.full((20,), float("nan")),
        torch.zeros(4, 8).to_sparse(),
        None,
        ["text", 5],
        [],
    ],
    ids=str,
)
def test_input_that_says_something(batch: Any) -> None:
    assert constant_input(batch) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.uint8])
def test_zeros_are_an_error(dtype: torch.dtype) -> None:
    finding = constant_input((torch.zeros(8, 4, dtype=dtype), torch.arange(8)))
    assert finding is not None
    assert (finding.rule, finding.severity) == ("constant_input", "error")
    assert finding.sentence == "The first batch holds nothing but 0, in all 32 elements of its largest tensor."


def test_another_constant_is_a_warning() -> None:
    finding = constant_input({"x": [torch.full((8, 4), 0.5)], "y": NUMBERS[:16]})
    assert finding is not None
    assert (finding.severity, "nothing but 0.5," in finding.sentence) == ("warning", True)


def test_the_loop_looks_at_the_first_batch_once() -> None:
    class Zeros(Small):
        def batches(self, run: Run) -> Iterable[Any]:
            return run.resident(torch.zeros(self.batch_size * 2, 3))

    run = Run(benchmark := Zeros(batch_size=8))
    loop = Loop(benchmark, run)
    loop.warm_up()
    loop.observe(3)
    assert [finding.rule for finding in run.findings] == ["constant_input"]


def credited(benchmark: Small, *numbers: int) -> tuple[int, int | None]:
    loop = Loop(benchmark, Run(benchmark))
    loop.warm_up()
    for number in numbers:
        loop.observe(number)
    return loop.credited.updates, loop.credited.promised


class Counting(Small):
    """Updates where `updates` says so, by the number of the step."""

    def build(self, run: Run) -> None:
        super().build(run)
        self.steps = 0

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        self.steps += 1
        loss = self.model(batch).square().mean()
        for _ in range(self.updates(self.steps)):
            run.update(self.model(batch).square().mean(), self.optimizer)
        return loss

    def updates(self, step: int) -> int:
        return 1


def test_every_update_is_counted_outside_of_the_warm_up() -> None:
    assert credited(Counting(), 5, 7) == (12, 12)
    assert credited(Counting(precision="bf16"), 4) == (4, 4)


def test_two_optimizers_make_two_updates_a_batch() -> None:
    class Two(Counting):
        def updates(self, step: int) -> int:
            return 2

    assert credited(Two(), 5) == (10, 10)


def test_steps_that_stop_training_are_seen() -> None:
    class Lazy(Counting):
        def updates(self, step: int) -> int:
            return int(step <= 3 or step % 10 < 3)

    assert credited(Lazy(), 100) == (30, 100)


def test_a_task_that_updates_now_and_then_promises_nothing() -> None:
    class Episodes(Counting):
        def updates(self, step: int) -> int:
            return int(step % 4 == 0)

    class Uneven(Counting):
        def updates(self, step: int) -> int:
            return step % 2

    class Never(Counting):
        def updates(self, step: int) -> int:
            return 0

    assert credited(Episodes(), 8) == (2, None)
    assert credited(Uneven(), 8) == (4, None)
    assert credited(Never(), 8) == (0, None)
