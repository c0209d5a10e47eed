"""Pressure on a device's queue: kernels that do next to nothing, one after the other. An item is a launch.

python main.py --level 50
"""

import torch

from cotenant.bench import Run, main
from cotenant.bench.pressure import DevicePressure


class LaunchPressure(DevicePressure):
    """Work is a kernel on a single number."""

    item = "launch"

    def prepare(self, run: Run) -> None:
        self.single = torch.zeros(1, device=run.device)

    def enqueue(self) -> float:
        self.single.neg_()
        return 1


if __name__ == "__main__":
    main(LaunchPressure)
