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
    size_mib: int = flag(1024, help="held at level 100")

    def prepare(self, run: Run) -> None:
        self.held = np.frombuffer(mmap.mmap(-1, self.size_mib * MIB * self.level // FULL), np.uint8)

    def worked(self) -> float:
        # The kernel may swap out memory that is not touched.
        self.held[:: mmap.PAGESIZE] += 1
        return len(self.held) / GIB

    def items(self, batch: int) -> float:
        return self.amount * self.lasted_s


if __name__ == "__main__":
    main(MemoryPressure)
