"""A small benchmark for tests, and benchmarks in the loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from cotenant.bench import Benchmark, Run
from cotenant.bench.loop import Loop


class Small(Benchmark):
    """One step = one update of a linear layer."""

    item = "row"

    batch_size: int = 4
    repeat: int = 6
    number: int = 3
    cuda: bool = False

    def build(self, run: Run) -> None:
        self.model = run.place(nn.Linear(3, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def batches(self, run: Run) -> Iterable[Any]:
        return run.resident(torch.randn(self.batch_size, 3))

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        loss = self.model(batch).square().mean()
        run.update(loss, self.optimizer)
        return loss


def warmed(benchmark: Benchmark) -> tuple[Loop, Run]:
    """Return the loop of a benchmark that has warmed up, and its run."""
    run = Run(benchmark)
    loop = Loop(benchmark, run)
    loop.warm_up()
    return loop, run
