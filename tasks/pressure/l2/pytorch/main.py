"""Pressure on a device's last-level cache: copies within it. An item is a GB.

python main.py --level 50 --size-kib 16384
"""

import torch

from cotenant.bench import Run, UnsupportedError, flag, main
from cotenant.bench.pressure import DevicePressure

KIB = 1 << 10
COPIES = 32
"""Copies recorded in one graph: a single copy is as short as its launch."""


class DeviceCachePressure(DevicePressure):
    """Work is copies from one half of a table to the other: each byte is read once and written once."""

    item = "GB"

    size_kib: int = flag(0, help="of the table; 0: half of the device's last-level cache", least=0)

    def prepare(self, run: Run) -> None:
        size_bytes = self.size_kib * KIB or run.chosen.cache_bytes // 2
        if not size_bytes:
            raise UnsupportedError(
                "torch does not tell how large this device's last-level cache is.", "Name a size, as --size-kib 4096."
            )
        self.table = torch.zeros(2, size_bytes // 2, dtype=torch.uint8, device=run.device)
        self.copy = run.chosen.recorded(self.copies).graph.replay if run.device.type == "cuda" else self.copies

    def copies(self) -> None:
        source, target = self.table
        for _ in range(COPIES):
            target.copy_(source)

    def enqueue(self) -> float:
        self.copy()
        return COPIES * self.table.nbytes / 1e9


if __name__ == "__main__":
    main(DeviceCachePressure)
