"""The contract of a benchmark: one file, one class; the harness owns everything else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from cotenant.bench.loader import rows, tensors_in
from cotenant.bench.parameters import BenchmarkParameters
from cotenant.bench.run import Run


class Benchmark(BenchmarkParameters):
    """Base of every benchmark: `build`, `batches`, `step`, and `items` if an item is not a row of the batch.

    Annotated attributes of a subclass are flags of its own, beside the flags of every benchmark
    (`BenchmarkParameters`); an assignment overrides a default (`batch_size: int = 128`).
    """

    def build(self, run: Run) -> None:
        """Make models and optimizers, each model placed by `run.place`."""
        raise NotImplementedError

    def batches(self, run: Run) -> Iterable[Any]:
        """Return the batches, without end: `run.resident(...)` or `run.loader(dataset)`."""
        raise NotImplementedError

    def step(self, run: Run, batch: Any) -> Tensor | None:
        """Do one training step and return its loss, a scalar still on the device (None: no loss here)."""
        raise NotImplementedError

    def items(self, batch: Any) -> float:
        """Return the number of items that one step on `batch` counts: the rows of the batch, or of its first part."""
        return rows(batch)

    def texts(self, batch: Any) -> Iterable[Tensor]:
        """Return the tensors of a batch that hold words: by default two-dimensional ones of whole numbers."""
        return [leaf for leaf in tensors_in(batch) if leaf.dim() == 2 and not leaf.is_floating_point()]

    def flops(self, batch: Any) -> float | None:
        """Return the operations of one step on `batch` by a closed form; None if this benchmark declares none.

        Count as the harness does: the products of forward and backward, 2 m n k each for (m, k) by (k, n); norms, sums
        and activations nothing. A causal mask saves nothing. Products computed again for a backward count if the
        benchmark does so itself (checkpointing), not if a kernel of attention does.
        Called once, outside of every clock. A difference above 2 % from the harness's count is a finding.
        """
        return None

    @property
    def item_is_row(self) -> bool:
        """True if an item is a row of the batch, so that the harness counts items."""
        return type(self).items is Benchmark.items
