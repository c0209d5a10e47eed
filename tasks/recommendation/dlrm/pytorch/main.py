"""DLRM with crosses of low rank (Naumov et al. 2019; Wang et al. 2021, "DCN V2") predicts clicks on advertisements.

python main.py --batch-size 8192 --rows 1000000
"""

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from cotenant.bench import Benchmark, Run, UnsupportedError, flag, main
from cotenant.layers.data import scattered, zipf

NUMBERS = 13
BOTTOM = (NUMBERS, 512, 256, 128)
TABLES = 26
CROSSED = BOTTOM[-1] * (TABLES + 1)
CROSSES, RANK = 3, 512
TOP = (CROSSED, 1024, 1024, 512, 256, 1)


def perceptron(sizes: tuple[int, ...]) -> nn.Sequential:
    """Return linear layers of these sizes with a ReLU after each."""
    return nn.Sequential(*(part for ends in pairwise(sizes) for part in (nn.Linear(*ends), nn.ReLU())))


class Cross(nn.Module):
    """Adds to its input the product of the first layer's input with a low-rank linear map of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(CROSSED, RANK, bias=False), nn.Linear(RANK, CROSSED)

    def forward(self, x_bc, first_bc):
        return torch.addcmul(x_bc, first_bc, self.up(self.down(x_bc)))


class DLRM(nn.Module):
    """13 numbers and a row of each of 26 tables, crossed with one another, to the logit of a click."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        # One lookup for all tables, which are concatenated.
        self.tables = nn.Embedding(TABLES * rows, BOTTOM[-1], sparse=True)
        nn.init.uniform_(self.tables.weight, -(rows**-0.5), rows**-0.5)
        self.bottom = perceptron(BOTTOM)
        self.crosses = nn.ModuleList(Cross() for _ in range(CROSSES))
        self.top = perceptron(TOP)[:-1]

    def forward(self, numbers_bn, rows_bt):
        """Return logits (b,)."""
        first_bc = torch.cat((self.bottom(numbers_bn)[:, None], self.tables(rows_bt)), dim=1).flatten(1)
        x_bc = first_bc
        for cross in self.crosses:
            x_bc = cross(x_bc, first_bc)
        return self.top(x_bc).squeeze(1)


class ClickPrediction(Benchmark):
    """One step = one SGD update: of all weights of the layers, and of the rows of the tables that were read."""

    item = "sample"

    batch_size: int = 8192
    rows: int = flag(1_000_000, help="rows of each of the 26 tables")
    lr: float = flag(0.1, help="learning rate")

    def build(self, run: Run) -> None:
        if run.precision.name == "half":
            raise UnsupportedError("Tables have no fp32 copies to be stepped.", "Use --precision fp16.")
        with run.device:
            model = DLRM(self.rows)
        self.model = run.place(model)
        # No fused kernel updates sparse rows only.
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.lr)

    def batches(self, run: Run) -> Iterator[tuple[torch.Tensor, ...]]:
        """Return numbers (b, 13), rows of all tables (b, 26), and whether there was a click (b,)."""
        rows_bt = scattered(zipf(self.rows, self.batch_size, TABLES), self.rows)
        rows_bt += torch.arange(TABLES) * self.rows
        clicked_b = (torch.rand(self.batch_size) < 0.25).float()
        return run.resident(torch.randn(self.batch_size, NUMBERS), rows_bt, clicked_b)

    def step(self, run: Run, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        numbers_bn, rows_bt, clicked_b = batch
        # In fp32 even if the layers are in 16 bit.
        loss = F.binary_cross_entropy_with_logits(self.model(numbers_bn, rows_bt).float(), clicked_b)
        run.update(loss, self.optimizer)
        return loss

    def flops(self, batch: tuple[torch.Tensor, ...]) -> float:
        layers = sum(into * out for sizes in (BOTTOM, TOP) for into, out in pairwise(sizes))
        return 6 * self.batch_size * (layers + CROSSES * 2 * CROSSED * RANK)


if __name__ == "__main__":
    main(ClickPrediction)
