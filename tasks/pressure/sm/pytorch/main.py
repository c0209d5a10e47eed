"""Pressure on a device's multiprocessors: products of matrices that its cache holds. An item is a TFLOP.

python main.py --level 50 --side 2048
"""

from typing import Any

import torch

from cotenant.bench import Run, flag, main
from cotenant.bench.pressure import DevicePressure


class ProductPressure(DevicePressure):
    """Work is products of two matrices into a third, by default in fp16."""

    item = "TFLOP"

    side: int = flag(2048, help="rows and columns of each matrix")

    def __init__(self, **parameters: Any) -> None:
        if not any(parameters.get(spelling) for spelling in ("precision", "half", "fp16", "opt_level")):
            parameters["precision"] = "fp16"  # Every device with tensor cores has it.
        super().__init__(**parameters)

    def prepare(self, run: Run) -> None:
        # Random, never zeros: products of zeros take less power, and higher clocks.
        self.left, self.right, self.out = (
            torch.randn(self.side, self.side, device=run.device).to(run.precision.dtype) for _ in range(3)
        )

    def enqueue(self) -> float:
        torch.mm(self.left, self.right, out=self.out)
        return 2 * self.side**3 / 1e12


if __name__ == "__main__":
    main(ProductPressure)
