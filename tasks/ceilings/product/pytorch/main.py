"""The ceiling of arithmetic: one large matrix product after the other. Nothing is trained.

python main.py --side 8192 --precision bf16
"""

from collections.abc import Iterator

import torch

from cotenant.bench import Benchmark, Run, flag, main


class MatrixProduct(Benchmark):
    """One step = one product of square matrices into a third one, all in the precision asked for."""

    item = "FLOP"

    batch_size: int = flag(1, "--batch-size", "-b", help="products in one step")
    side: int = flag(4096, help="rows and columns of each matrix")

    def build(self, run: Run) -> None:
        # Autocast would copy the factors in every step; these have the type from the start.
        self.out = torch.empty(self.side, self.side, dtype=run.precision.dtype, device=run.device)

    def batches(self, run: Run) -> Iterator[tuple[torch.Tensor, ...]]:
        # Random, never zeros: products of zeros take less power, and higher clocks.
        return run.resident(*(torch.randn(self.side, self.side).to(self.out.dtype) for _ in range(2)))

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        left, right = batch
        for _ in range(self.batch_size):
            torch.mm(left, right, out=self.out)

    def items(self, batch: tuple[torch.Tensor, torch.Tensor]) -> float:
        return 2 * self.side**3 * self.batch_size

    flops = items


if __name__ == "__main__":
    main(MatrixProduct)
