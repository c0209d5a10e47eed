"""Watches single steps: two of the warm-up, and one at each audit, between observations or after the last.

A watched step is a step of the training like any other, on the next batch; nothing of it is timed or undone.
"""

from __future__ import annotations

import gc
from typing import Any

import torch
from torch import Tensor

from cotenant.bench.chrono import StepFunction, clock_ns
from cotenant.bench.contract import Benchmark
from cotenant.bench.observed import FlopCount, described_optimizer, watched_updates
from cotenant.bench.run import Run

LIKE = 0.01
"""The operations of two equal steps may differ by this share."""
MOST_BETWEEN = 2
BATCHES_AN_AUDIT = 25
"""One audit for this many batches: a watched step takes about as long as two batches."""


def borders(number: int, repeat: int) -> list[int]:
    """Return the numbers of observations, of `repeat` with `number` batches, after which audits but the last are due.

    Only these amounts decide, so that all ranks make the same audits, and a seed has the same losses each time.
    """
    wanted = min(MOST_BETWEEN, repeat - 1, number * repeat // BATCHES_AN_AUDIT)
    return [repeat * (audit + 1) // (wanted + 1) for audit in range(wanted)]


class Auditor:
    """Compares the products of audits with the last step watched in the warm-up.

    The first step may do more than others: validation, or weights that start from its batch.

    `step` is the benchmark's own, eager step. `dtype` and `described` describe the products and the optimizers of the
    warm-up; `updates_of_batch` is the number of updates of each warm-up step, 0 if it varies or if the benchmark
    declares that steps differ.
    """

    def __init__(self, benchmark: Benchmark, run: Run, step: StepFunction) -> None:
        self._benchmark, self._run, self._step = benchmark, run, step
        self._batch: Any = None
        self.described: list[dict[str, Any]] = []
        self.counted = FlopCount()
        self.updates_of_batch = 0
        self.after: list[int] = []
        """The number of observations before each audit."""
        self._cost_ns: list[int] = []
        self._dtypes: set[str] = set()
        self._even = True

    @property
    def dtype(self) -> str | None:
        return self.counted.dtype

    def watch(self, batch: Any) -> Tensor | None:
        """Do a step of the warm-up, replacing an earlier watched one; return its loss."""
        self._batch, self.counted = batch, FlopCount()
        with watched_updates(self._run) as optimizers:
            loss = self._watched(batch, self.counted)
        seen = [described_optimizer(optimizer, self._run.precision) for optimizer in optimizers]
        self.described = seen or self.described
        return loss

    def expect(self, updates: set[int]) -> None:
        """Expect each batch to make as many updates as each warm-up step made, if they all made the same number."""
        self.updates_of_batch = updates.pop() if len(updates) == 1 and not self._run.uneven else 0

    def audit(self, batch: Any, observations: int) -> None:
        """Watch a step on `batch`, after this many observations."""
        start_ns, counted = clock_ns(), FlopCount()
        self._watched(batch, counted)
        self._run.chosen.synchronize()
        if counted.dtype is not None:
            self._dtypes.add(counted.dtype)
        if self.counted.flops and not counted.uncounted:
            self._even &= abs(counted.flops / self.counted.flops - 1) <= LIKE
        gc.collect()
        self.after.append(observations)
        self._cost_ns.append(clock_ns() - start_ns)

    def _watched(self, batch: Any, counted: FlopCount) -> Tensor | None:
        """Do a step, eagerly: products in compiled code are not seen."""
        with torch.compiler.set_stance("force_eager"), counted:
            return self._step(self._run, batch)

    @property
    def _is_one_model(self) -> bool:
        """True if all operations are seen: of several replicas, only some threads are seen."""
        return self._run.observed.get("replicas", 1) == 1

    def results(self) -> dict[str, Any]:
        """Return the part of a record on the audits."""
        others = [] if self.dtype in self._dtypes else sorted(self._dtypes)
        return {
            "steps": len(self.after),
            "even": self._even or not self._is_one_model,
            "uneven": self._run.uneven,
            "after": self.after,
            "cost_ns": self._cost_ns,
            "eager": bool(self._benchmark.compile) and "compile" in self._run.heeded,
            "differences": [f"products in {', '.join(others)}, not {self.dtype}"] if others and self.dtype else [],
        }

    def operations(self) -> dict[str, Any]:
        """Return the operations of one step, as counted in the warm-up and by the benchmark's closed form."""
        counted = self.counted.total if self._is_one_model and self._even and not self._run.uneven else None
        return {
            "flops_per_step": counted,
            "flops_closed": self._benchmark.flops(self._batch),
            "flops_reducible": counted and self.counted.reducible,
            "flops_uncounted": sorted(self.counted.uncounted),
        }
