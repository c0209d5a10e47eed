"""Tenants that do something to others, or to their slice: a memory hog, a sudden death, pinned pages.

python main.py --deed hog|die|pin --who 0     The tenant with this number does it; the others train a small network.
"""

import os
import signal
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import nn

from cotenant.bench import Benchmark, Run, flag

MEBIBYTE = 1 << 20


class Deed(Benchmark):
    """One step = one update of a small network; in one of the tenants the deed as well."""

    item = "example"

    batch_size: int = 256
    deed: Literal["hog", "die", "pin"] = flag("die", help="take all device memory, die by SIGKILL, or pin pages")
    who: int = flag(0, help="number of the tenant that does it")
    mebibytes: int = flag(4096, help="how much is pinned, or taken in a step")
    after: int = flag(50, help="steps after which it dies")
    least = {"who": 0}  # noqa: RUF012

    def build(self, run: Run) -> None:
        self.does = int(os.environ.get("JOB_ID", "0")) == self.who
        self.model = run.place(nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)))
        self.optimizer = run.sgd(self.model.parameters(), lr=1e-3)
        self.held: list[Any] = []
        self.steps = 0
        if self.does and self.deed == "pin":
            pages = torch.empty(self.mebibytes * MEBIBYTE, dtype=torch.uint8, pin_memory=run.device.type != "cpu")
            self.held.append(pages.fill_(1))

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        return run.resident(torch.randn(self.batch_size, 256))

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        loss = (self.model(batch) - batch).pow(2).mean()
        run.update(loss, self.optimizer)
        self.steps += 1
        if self.does and self.deed == "die" and self.steps > self.after:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.does and self.deed == "hog" and run.device.type != "cpu":
            self.held.append(torch.ones(self.mebibytes * MEBIBYTE, dtype=torch.uint8, device=run.device))
        return loss


if __name__ == "__main__":
    Deed.main()
