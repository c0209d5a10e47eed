"""A tiny benchmark for several ranks: `python -m torch.distributed.run --nproc_per_node=2 ddp.py`."""

from collections.abc import Iterator

import torch

from cotenant.bench import Benchmark, Run, flag


class Parallel(Benchmark):
    """One step = one data-parallel update of a small linear model; `--die-at` ends one rank in that step."""

    item = "row"
    die_at: int = flag(-1, "--die-at", help="step at which the last rank dies")

    def build(self, run: Run) -> None:
        self.model = run.place(torch.nn.Linear(8, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.steps = 0

        # Ranks begin with other weights, and share the first one's from here on.
        run.metrics["weights"] = float(sum(parameter.double().sum() for parameter in self.model.parameters()))

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        return run.resident(torch.randn(self.batch_size, 8))

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        if self.steps == self.die_at and run.world.rank == run.world.size - 1:
            raise SystemExit(7)
        loss = self.model(batch).square().mean()
        run.update(loss, self.optimizer)
        return loss


if __name__ == "__main__":
    Parallel.main()
