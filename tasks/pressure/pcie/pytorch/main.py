"""Pressure on the way to a device: copies from pinned memory and back, both at once. An item is a GB.

python main.py --level 50 --size-mib 32
"""

import torch

from cotenant.bench import Run, flag, main
from cotenant.bench.pressure import DevicePressure

MIB = 1 << 20


class TransferPressure(DevicePressure):
    """Work is a copy to the device and one from it, on a stream each; both count."""

    item = "GB"

    size_mib: int = flag(32, help="of one copy")

    def prepare(self, run: Run) -> None:
        size = (2, self.size_mib * MIB)
        self.host = torch.zeros(size, dtype=torch.uint8, pin_memory=run.device.type != "cpu")
        self.remote = torch.ones(size, dtype=torch.uint8, device=run.device)
        self.at_once = run.chosen.at_once()

    def enqueue(self) -> float:
        self.at_once(self.upload, self.download)
        return self.host.nbytes / 1e9

    def upload(self) -> None:
        self.remote[0].copy_(self.host[0], non_blocking=True)

    def download(self) -> None:
        self.host[1].copy_(self.remote[1], non_blocking=True)


if __name__ == "__main__":
    main(TransferPressure)
