"""A benchmark whose steps take a known time, through the measured loop: the reported rate is theirs within one percent.

What the steps took they write down by themselves: on a busy machine they take longer than planned, and the harness has
to say so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import pytest
import torch

from cotenant.bench import Benchmark, Run, flag, session

ROWS, REPEAT, SKIP = 32, 20, 2


class Spinning(Benchmark):
    """One step = so much time of this thread's processor."""

    item = "row"
    steps: ClassVar[list[tuple[int, int]]] = []

    batch_size: int = ROWS
    cuda: bool = False
    step_us: int = flag(4000, "--step-us", help="microseconds of a step")

    def build(self, run: Run) -> None:
        """Nothing is trained."""

    def batches(self, run: Run) -> Iterable[Any]:
        return run.resident(torch.randn(self.batch_size, 3))

    def step(self, run: Run, batch: Any) -> None:
        start_ns = time.monotonic_ns()
        until_ns = time.thread_time_ns() + 1000 * self.step_us
        while time.thread_time_ns() < until_ns:
            pass
        self.steps.append((start_ns, time.monotonic_ns()))


@pytest.mark.parametrize(
    ("step_us", "number", "short_ns"),
    [(4000, 5, 0), (200, 100, 1_000_000)],
    ids=["books on every batch", "books on one of ten"],
)
def test_the_rate_is_that_of_the_steps(
    step_us: int, number: int, short_ns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotenant.bench.loop.SHORT_STEP_NS", short_ns)
    monkeypatch.setattr(Spinning, "steps", [])
    asked = {"--step-us": step_us, "--number": number, "--repeat": REPEAT, "--skip": SKIP}
    words = [str(word) for pair in asked.items() for word in pair]
    assert session.main(Spinning, [*words, "--report", str(tmp_path / "r.json")]) == 0
    reported = json.loads((tmp_path / "r.json").read_text())["statistics"]["median"]

    measured = Spinning.steps[-REPEAT * number :]
    groups = [measured[first : first + number] for first in range(SKIP * number, REPEAT * number, number)]
    true = median(ROWS * number / (last[1] - first[0]) * 1e9 for first, *_, last in groups)
    assert reported == pytest.approx(true, rel=0.01)
    # No clock can be right by which they were faster than their own processor time.
    assert reported <= 1.01 * ROWS * 1e6 / step_us
