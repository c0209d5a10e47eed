"""The ceiling of memory: a = b + 3 c over arrays that no cache holds (McCalpin, STREAM, 1995). Nothing is trained.

python main.py --elements 67108864
"""

from collections.abc import Iterator

import torch

from cotenant.bench import Benchmark, Run, flag, main

FACTOR = 3.0
ARRAYS = 3


class Triad(Benchmark):
    """One step = one pass over three arrays of 4-byte numbers: two are read, one is written."""

    item = "byte"

    batch_size: int = flag(1, "--batch-size", "-b", help="passes in one step")
    elements: int = flag(1 << 26, help="numbers in one array; three arrays are to be four times the caches")

    def build(self, run: Run) -> None:
        self.sums = torch.empty(self.elements, device=run.device)

    def batches(self, run: Run) -> Iterator[tuple[torch.Tensor, ...]]:
        return run.resident(torch.randn(self.elements), torch.randn(self.elements))

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        addends, factors = batch
        for _ in range(self.batch_size):
            torch.add(addends, factors, alpha=FACTOR, out=self.sums)

    def items(self, batch: tuple[torch.Tensor, torch.Tensor]) -> float:
        # As STREAM counts: the fetch of a cache line before it is written is not included.
        return ARRAYS * self.sums.element_size() * self.elements * self.batch_size


if __name__ == "__main__":
    main(Triad)
