"""Pressure on a device's memory bandwidth: copies between arrays that no cache holds. An item is a GB.

python main.py --level 50
"""

import torch

from cotenant.bench import Run, flag, main
from cotenant.bench.pressure import DevicePressure

MIB = 1 << 20
PIECE = 16 * MIB
"""Bytes of one copy: some ten microseconds of a large device."""
CACHES, LEAST_BYTES = 4, 256 * MIB
INFINITY_CACHE = 256 * MIB
"""Behind the cache that torch tells of an MI300X there is another one, of which it tells nothing."""


def usual_bytes(run: Run) -> int:
    """Return how many bytes no cache of the device holds."""
    untold = 0 if run.chosen.is_nvidia else INFINITY_CACHE
    return max(LEAST_BYTES, CACHES * max(run.chosen.cache_bytes, untold))


class DeviceMemoryPressure(DevicePressure):
    """Work is a copy of the next piece of one array to another: it is read once and written once."""

    item = "GB"

    size_mib: int = flag(
        0, help="of both arrays; 0: four times the cache, at least 256, or 1024 if not NVIDIA's", least=0
    )

    def prepare(self, run: Run) -> None:
        size_bytes = self.size_mib * MIB or usual_bytes(run)
        source, target = (torch.zeros(size_bytes // 2, dtype=torch.uint8, device=run.device) for _ in range(2))
        self.pieces = list(zip(source.split(PIECE), target.split(PIECE), strict=True))
        self.at = 0

    def enqueue(self) -> float:
        source, target = self.pieces[self.at]
        self.at = (self.at + 1) % len(self.pieces)
        target.copy_(source)
        return 2 * source.nbytes / 1e9


if __name__ == "__main__":
    main(DeviceMemoryPressure)
