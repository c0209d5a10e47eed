"""A benchmark that cheats: `--fraud` says how. The harness has to notice, without being told."""

from collections.abc import Iterator
from typing import Literal

import torch

from cotenant.bench import Benchmark, Run, flag


class Fraud(Benchmark):
    """One step = one update of a small linear model, where it is honest."""

    item = "row"
    batch_size: int = 32
    fraud: Literal["none", "cast", "skips", "zeros"] = flag("none", "--fraud", help="how it cheats")

    def build(self, run: Run) -> None:
        self.model = run.place(torch.nn.Linear(64, 8))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.steps, self.last = 0, torch.zeros(())

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        size = (self.batch_size, 64)
        return run.resident(torch.zeros(size) if self.fraud == "zeros" else torch.randn(size))

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        if self.fraud == "skips" and self.steps > 5 and self.steps % 10 > 2:
            return self.last
        if self.fraud == "cast":
            with torch.autocast(run.device.type, enabled=False):
                self.last = self.model(batch).square().mean()
        else:
            self.last = self.model(batch).square().mean()
        run.update(self.last, self.optimizer)
        return self.last


if __name__ == "__main__":
    Fraud.main()
