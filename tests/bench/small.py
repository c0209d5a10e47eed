"""A small benchmark for tests, and benchmarks in the loop."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from cotenant.bench import Benchmark, Run, session
from cotenant.bench.loop import Loop
from results.made import check_schema


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


def loop_of(benchmark: Benchmark) -> Loop:
    return Loop(benchmark, Run(benchmark))


def warmed(benchmark: Benchmark) -> tuple[Loop, Run]:
    """Return the loop of a benchmark that has warmed up, and its run."""
    loop = Loop(benchmark, run := Run(benchmark))
    loop.warm_up()
    return loop, run


def record_of(cls: type[Benchmark], folder: Path, words: str = "", status: int = 0) -> dict[str, Any]:
    """Run a benchmark alone, which ends with this status; return its record."""
    (report := folder / "record.json").unlink(missing_ok=True)  # An earlier run's is no record of this one.
    assert session.run_benchmark(cls, [*words.split(), "--report", str(report)]) == status
    return read(report)


def read(path: Path) -> dict[str, Any]:
    """Return the record in a file, which the schema allows."""
    return check_schema(path.read_bytes())
