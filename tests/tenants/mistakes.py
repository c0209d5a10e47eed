"""A benchmark with a mistake that people make: `--mistake` says which. The harness has to notice."""

from collections.abc import Iterator
from typing import Literal

import torch

from cotenant.bench import Benchmark, Run, flag, main

FIRST_STEPS = 5
"""The warm-up, and a little more: a mistake may begin behind them."""


class Mistaken(Benchmark):
    """One step = one update of a small model, where nothing is wrong."""

    item = "row"
    batch_size: int = 32
    mistake: Literal["none", "cast", "casts", "skips", "halves", "zeros"] = flag("none", "--mistake", help="which")

    def build(self, run: Run) -> None:
        self.model = run.place(torch.nn.Linear(128, 8))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.steps, self.last = 0, torch.zeros(())

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        batch = (torch.zeros if self.mistake == "zeros" else torch.randn)(self.batch_size, 128)
        if self.mistake != "halves":
            return run.resident(batch)
        return (batch if step < FIRST_STEPS else batch[::2] for step in range(10**9))

    def items(self, batch: torch.Tensor) -> float:
        return self.batch_size

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        if self.mistake == "skips" and self.steps > FIRST_STEPS and self.steps % 10 > 2:
            return self.last
        if self.mistake == "cast" or (self.mistake == "casts" and self.steps > FIRST_STEPS):
            with torch.autocast(run.device.type, enabled=False):
                return self.train(run, batch)
        return self.train(run, batch)

    def train(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        self.last = self.model(batch).square().mean()
        run.update(self.last, self.optimizer)
        return self.last


if __name__ == "__main__":
    main(Mistaken)
