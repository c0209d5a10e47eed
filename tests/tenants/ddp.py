"""A tiny benchmark for several ranks: `python -m torch.distributed.run --nproc_per_node=2 ddp.py`."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Literal

import torch

from cotenant.bench import Benchmark, Run, flag, loop, main


class Parallel(Benchmark):
    """One step = one data-parallel update of a small linear model; `--die-at` ends a rank in that step.

    Of `--tardy` seconds the last rank sleeps after every step, and `--long` is when a warm-up is long.
    """

    item = "row"
    die_at: int = flag(-1, "--die-at", help="step at which a rank dies", least=-1)
    die_how: Literal["kill", "raise", "leave"] = flag("leave", "--die-how", help="by a signal, an error, or in peace")
    die_who: int = flag(-1, "--die-who", help="which rank, counted from the last where negative", least=-9)

    tardy: float = flag(0.0, "--tardy", help="seconds")
    long: float = flag(60.0, "--long", help="seconds")

    def build(self, run: Run) -> None:
        loop.LONG_WARM_UP_NS = round(self.long * 1e9)
        self.model = run.place(torch.nn.Linear(8, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.steps = 0

        # Ranks begin with other weights, and share the first one's from here on.
        run.metrics["weights"] = float(sum(parameter.double().sum() for parameter in self.model.parameters()))

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        return run.resident(torch.randn(self.batch_size, 8))

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        if self.steps == self.die_at and run.world.rank == self.die_who % run.world.size:
            self.die()
        loss = self.model(batch).square().mean()
        run.update(loss, self.optimizer)
        if run.world.rank == run.world.size - 1:
            time.sleep(self.tardy)
        return loss

    def die(self) -> None:
        print(f"last words at {time.time_ns()}", file=sys.stderr, flush=True)
        if self.die_how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.die_how == "raise":
            raise ValueError("an odd batch")
        os._exit(0)


if __name__ == "__main__":
    main(Parallel)
