"""Pressure on memory: a part of it is held resident. An item is a GiB held for a second, so the rate is what is held.

python main.py --level 50 --size-mib 1024
"""

import mmap

import numpy as np

from cotenant.bench import Run, flag, main
from cotenant.bench.pressure import FULL, Pressure

MIB, GIB = 1 << 20, 1 << 30


class MemoryPressure(Pressure):
    """A level is the part of `--size-mib` that is held: each period writes to every page of it."""

    item = "GiB second"

    period_ms: int = 200
    number: int = 5
    size_mib: int = flag(1024, "--size-mib", help="held at level 100")

    def prepare(self, run: Run) -> None:
        self.held = np.empty(0, np.uint8)

    def before_observation(self, run: Run) -> None:
        super().before_observation(run)
        self.hold()

    def worked(self) -> float:
        self.hold()
        # Memory that nobody touches may be taken away.
        self.held[:: mmap.PAGESIZE] += 1
        return len(self.held) / GIB

    def items(self, batch: int) -> float:
        return self.amount * self.lasted_s

    def hold(self) -> None:
        """Hold the level's part, and no more."""
        size_bytes = self.size_mib * MIB * self.now // FULL
        if size_bytes != len(self.held):
            self.held = np.frombuffer(mmap.mmap(-1, size_bytes), np.uint8) if size_bytes else np.empty(0, np.uint8)
            self.held[:: mmap.PAGESIZE] = 1


if __name__ == "__main__":
    main(MemoryPressure)
