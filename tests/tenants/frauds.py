"""A benchmark that cheats: `--fraud` says how. The harness has to notice, without being told."""

from collections.abc import Iterator
from typing import Literal

import torch

from cotenant.bench import Benchmark, Run, flag, main

HONEST_STEPS = 5
"""The warm-up, and a little more."""
Cheat = Literal[
    "none", "cast", "skips", "zeros", "quarter", "smaller", "forward", "casts", "repeats", "rests", "doubles"
]


class Fraud(Benchmark):
    """One step = one update of a small model, where it is honest."""

    item = "row"
    batch_size: int = 32
    fraud: Cheat = flag("none", "--fraud", help="how it cheats")

    def build(self, run: Run) -> None:
        self.model = run.place(torch.nn.Linear(128, 8))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.small = run.place(torch.nn.Linear(1, 8))
        self.of_small = torch.optim.SGD(self.small.parameters(), lr=0.01)
        self.steps, self.last = 0, torch.zeros(())

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        size = (self.batch_size, 128)
        return run.resident(torch.zeros(size) if self.fraud == "zeros" else torch.randn(size))

    def items(self, batch: torch.Tensor) -> float:
        return len(batch) * (2 if self.fraud == "doubles" else 1)

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        if self.fraud == "skips" and self.steps > HONEST_STEPS and self.steps % 10 > 2:
            return self.last
        if self.fraud == "cast":
            with torch.autocast(run.device.type, enabled=False):
                return self.train(run, batch)
        if self.steps > HONEST_STEPS:
            return self.cheat(run, batch)
        return self.train(run, batch)

    def train(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        self.last = self.model(batch).square().mean()
        run.update(self.last, self.optimizer)
        return self.last

    def cheat(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        """Do a step that costs less than the steps that are checked."""
        if self.fraud == "quarter":
            return self.train(run, batch[: len(batch) // 4])
        if self.fraud == "forward":
            return self.model(batch).square().mean()
        if self.fraud == "casts":
            self.model.bfloat16()
            return self.train(run, batch.bfloat16())
        if self.fraud == "rests":
            self.optimizer.step = lambda *_: None
        if self.fraud in ("smaller", "repeats"):
            loss = self.small(batch[:, :1]).square().mean()
            run.update(loss, self.of_small)
            return loss if self.fraud == "smaller" else self.last
        return self.train(run, batch)


if __name__ == "__main__":
    main(Fraud)
