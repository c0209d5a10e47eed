"""Pressure on memory bandwidth: a = b + 3 c over arrays that no cache holds (McCalpin, STREAM, 1995). An item is a GB.

python main.py --level 50
"""

import os

# Before torch: its threads would stay awake for milliseconds of each rest, and nothing counts that.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")

import torch

from cotenant.bench import Run, flag, main
from cotenant.bench.pressure import Pressure
from cotenant.machine.cpu import last_level_caches

ARRAYS, FACTOR = 3, 3.0
PIECE = 1 << 20
"""Numbers of a piece of work: about a millisecond."""
CACHES, LEAST_BYTES = 4, 192 << 20


class BandwidthPressure(Pressure):
    """Work is the triad on the next piece of three arrays: two are read, one is written."""

    item = "GB"

    elements: int = flag(0, help="numbers in one array; 0: three arrays are four times its last-level caches", least=0)

    def prepare(self, run: Run) -> None:
        # A thread comes back to its own part of each piece: all caches together could hold the arrays.
        caches = last_level_caches(os.sched_getaffinity(0))
        whole = max(LEAST_BYTES, CACHES * sum(cache.size_bytes or 0 for cache in caches))
        elements = self.elements or whole // (4 * ARRAYS)
        arrays = (torch.empty(elements), torch.randn(elements), torch.randn(elements))
        self.pieces = list(zip(*(array.split(PIECE) for array in arrays), strict=True))
        self.at = 0

    def work(self) -> float:
        sums, addends, factors = self.pieces[self.at]
        self.at = (self.at + 1) % len(self.pieces)
        torch.add(addends, factors, alpha=FACTOR, out=sums)
        # As STREAM counts: the fetch of a cache line before it is written is not included.
        return ARRAYS * sums.numel() * sums.element_size() / 1e9


if __name__ == "__main__":
    main(BandwidthPressure)
