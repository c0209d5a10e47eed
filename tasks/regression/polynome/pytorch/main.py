"""Polynomial regression: a step so small that only the cost of launching work is measured.

python main.py --batch-size 256 --repeat 20 --number 100
"""

from collections.abc import Iterator

import torch
from torch import nn

from cotenant.bench import Benchmark, Run, flag, main

DEGREE = 4


class PolynomialRegression(Benchmark):
    """One step = one update of 4 weights and a bias on a batch made on the host and copied to the device."""

    item = "example"

    batch_size: int = 256
    lr: float = flag(0.01, help="learning rate")

    def build(self, run: Run) -> None:
        random = torch.Generator().manual_seed(self.seed)  # The same in all ranks, which learn one polynomial.
        self.coefficients = torch.randn(DEGREE, 1, generator=random) * 5
        self.intercept = torch.randn(1, generator=random) * 5
        self.model = run.place(nn.Linear(DEGREE, 1))
        # A fused step on 5 weights costs 2 % of such a step, but it does not wait for a scaler's verdict.
        sgd = torch.optim.SGD if run.precision.scaler is None else run.sgd
        self.optimizer = sgd(self.model.parameters(), lr=self.lr)
        self.loss = nn.SmoothL1Loss()

    def batches(self, run: Run) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        # Local names: a look-up in an object costs a thousandth of so small a step.
        device, size, powers = run.device, self.batch_size, torch.arange(1.0, DEGREE + 1)
        coefficients, intercept = self.coefficients, self.intercept
        while True:
            x = torch.randn(size, 1) ** powers
            y = x @ coefficients + intercept
            yield x.to(device, non_blocking=True), y.to(device, non_blocking=True)

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, y = batch
        loss = self.loss(self.model(x), y)
        run.update(loss, self.optimizer)
        return loss


if __name__ == "__main__":
    main(PolynomialRegression)
