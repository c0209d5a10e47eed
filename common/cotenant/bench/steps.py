"""The time of every step, for benchmarks that serve: a mean over an observation hides it.

Only a mark at the end of each step is added inside an observation: an event that the device stamps when it reaches
it, or on a processor one clock read. The host does not wait for it, so the rate is still of steps issued in a row.
"""

from __future__ import annotations

import itertools
from typing import Any

from torch import Tensor

from cotenant.bench.chrono import StepFunction, clock_ns
from cotenant.bench.device import Device


class MarkedSteps:
    """A stand-in for the step in one observation, which keeps a mark before the first step and after every one."""

    def __init__(self, step: StepFunction, device: Device) -> None:
        self._step = step
        self._marks: list[Any] = []
        self._device = device

    def _mark(self) -> Any:
        return self._device.mark() if self._device.is_accelerator else clock_ns()

    def __call__(self, run: Any, batch: Any) -> Tensor | None:
        if not self._marks:
            self._marks.append(self._mark())
        loss = self._step(run, batch)
        self._marks.append(self._mark())
        return loss

    def times_ns(self) -> list[int]:
        """Return the time of each step, from the end of the one before; the device must have finished them."""
        ends = self._marks
        if self._device.is_accelerator:
            return [round(before.elapsed_time(after) * 1e6) for before, after in itertools.pairwise(ends)]
        return [after - before for before, after in itertools.pairwise(ends)]
