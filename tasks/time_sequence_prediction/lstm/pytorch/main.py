"""Sine waves predicted by two LSTM cells, step after step: bound by launches of small dependent work.

python main.py --repeat 10 --number 5 [--recurrence lstm]
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from cotenant.bench import Benchmark, Run, flag, main
from cotenant.errors import CotenantError

HIDDEN = 51
PERIOD = 20
TEST_WAVES = 3
PRECISIONS = {"float16": "half", "float32": "fp32", "float64": "fp64"}
"""The precision that a `--dtype` of waves and weights asks of the products."""


class Sequence(nn.Module):
    """Two LSTM cells and a linear layer, applied to one value after another."""

    def __init__(self) -> None:
        super().__init__()
        self.cell1 = nn.LSTMCell(1, HIDDEN)
        self.cell2 = nn.LSTMCell(HIDDEN, HIDDEN)
        self.linear = nn.Linear(HIDDEN, 1)

    def forward(self, x_wt: torch.Tensor) -> torch.Tensor:
        """Predict the next value at every position: (waves, time) to (waves, time)."""
        zeros = x_wt.new_zeros(x_wt.size(0), HIDDEN)
        state1 = state2 = (zeros, zeros)
        outputs = []
        for x_w1 in x_wt.split(1, dim=1):
            state1 = self.cell1(x_w1, state1)
            state2 = self.cell2(state1[0], state2)
            outputs.append(self.linear(state2[0]))
        return torch.cat(outputs, dim=1)


class Layers(nn.Module):
    """The same network as layers: cuDNN runs all steps of nn.LSTM in a few kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, HIDDEN, num_layers=2, batch_first=True)
        self.linear = nn.Linear(HIDDEN, 1)

    def forward(self, x_wt: torch.Tensor) -> torch.Tensor:
        """Predict the next value at every position: (waves, time) to (waves, time)."""
        h_wth, _ = self.lstm(x_wt.unsqueeze(2))
        return self.linear(h_wth).squeeze(2)


class TimeSequence(Benchmark):
    """One step = one optimizer step on all 97 training waves (a full batch), each predicted one value ahead."""

    item = "optimizer step"

    # Compiling unrolls the loop over all positions: 40 minutes of a processor.
    fixed: ClassVar[dict[str, int]] = {"batch_size": 1, "compile": False}

    lr: float = flag(0.01, help="learning rate")
    waves: int = flag(100, help="sine waves, of which 3 are kept for testing", least=TEST_WAVES + 1)
    length: int = flag(1000, help="points of one wave", least=2)
    recurrence: Literal["cells", "lstm"] = flag(
        "cells", help="two nn.LSTMCell in a loop over the points, or one nn.LSTM of two layers"
    )
    dtype: Literal["float16", "float32", "float64"] = flag(
        "float32", help="of the waves and the weights; float16 is --half, and --precision wins over it"
    )

    def __init__(self, **parameters: Any) -> None:
        if parameters.get("precision") is not None:
            self.fixed = {**self.fixed, "dtype": "float32"}
        super().__init__(**parameters)
        if self.dtype != "float32":
            own = PRECISIONS[self.dtype]
            if self.asked_precision not in ("fp32", own):
                raise CotenantError(
                    f"Two precisions are asked for: --dtype {self.dtype} means {own}, and there is "
                    f"{self.asked_precision}.",
                    "Keep one of them, or say --precision, which wins.",
                )
            self.asked_precision = own

    def build(self, run: Run) -> None:
        model = Sequence() if self.recurrence == "cells" else Layers()
        # Weights of 16 bit are made by `run.place`, which keeps fp32 copies of them for the optimizer.
        self.model = run.place(model.double() if self.dtype == "float64" else model)
        self.optimizer = run.sgd(self.model.parameters(), lr=self.lr)
        self.loss = nn.MSELoss()

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        shifts = PERIOD * torch.rand(self.waves, 1, dtype=torch.float64)
        waves = torch.sin(2 * torch.pi * (torch.arange(self.length) + shifts) / PERIOD)
        return run.resident(waves[TEST_WAVES:].to(getattr(torch, self.dtype)))

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        loss = self.loss(self.model(batch[:, :-1]), batch[:, 1:])
        run.update(loss, self.optimizer)
        return loss

    def items(self, batch: torch.Tensor) -> int:
        return 1


if __name__ == "__main__":
    main(TimeSequence)
