"""Pressure on processors: every thread computes within its own cache. An item is a second of a processor.

python main.py --level 50
"""

import os

# Before torch: its threads would stay awake for milliseconds of each rest, and nothing counts that.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")

import torch

from cotenant.bench import Run, main
from cotenant.bench.pressure import Pressure, own_processor_seconds

GRAIN = 1 << 15
"""Numbers for which torch starts one thread more."""


class ProcessorPressure(Pressure):
    """Work is sines of numbers that a thread's own cache holds."""

    item = "processor second"

    def prepare(self, run: Run) -> None:
        self.angles = torch.randn(GRAIN * torch.get_num_threads())
        self.sines = torch.empty_like(self.angles)

    def work(self) -> float:
        before = own_processor_seconds()
        torch.sin(self.angles, out=self.sines)
        return own_processor_seconds() - before


if __name__ == "__main__":
    main(ProcessorPressure)
