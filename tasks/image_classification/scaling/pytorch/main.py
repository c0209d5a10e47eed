"""How a classifier's training scales over devices: resident random images, no input, one process per device.

python main.py --network resnet101 --batch-size 128        (one device; run.sh --devices 4 starts four)
"""

import os
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from cotenant.bench import Benchmark, Run, UnsupportedError, flag
from cotenant.bench.classifiers import CLASSES, classifier
from cotenant.errors import CotenantError


class Scaling(Benchmark):
    """One step = one SGD update on `batch-size` images on each of the devices."""

    item = "image"
    same_shapes = True
    fast_channels_last = True

    batch_size: int = flag(128, "--batch-size", "-b", help="images in one batch, per device")
    repeat: int = 10
    number: int = 10
    devices: int = flag(0, "--devices", help="over how many devices; 0 means all")
    network: str = flag("resnet101", "--network", help="a classifier of torchvision, by its name there")
    size: int = flag(224, help="pixels of an image's side")
    lr: float = flag(0.01, help="learning rate")

    def __init__(self, **parameters: Any) -> None:
        started = int(os.environ.get("WORLD_SIZE", "1"))
        parameters["devices"] = parameters.get("devices") or started
        super().__init__(**parameters)
        if self.devices == started:
            return
        there = int(os.environ.get("DEVICE_TOTAL", self.devices))
        if self.devices > there:
            raise UnsupportedError(f"--devices {self.devices} is more than DEVICE_TOTAL, {there}.", "Ask for fewer.")
        raise CotenantError(
            f"--devices {self.devices} takes as many processes, not {started}.", "Start it with run.sh."
        )

    def build(self, run: Run) -> None:
        self.model = run.place(classifier(self.network, "--network", self.size))
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = run.sgd(self.model.parameters(), lr=self.lr, momentum=0.9, weight_decay=1e-4)

    def batches(self, run: Run) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        images = torch.randn(self.batch_size, 3, self.size, self.size)
        return run.resident(images, torch.randint(CLASSES, (self.batch_size,)))

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        loss = self.loss(self.model(images), labels)
        run.update(loss, self.optimizer)
        return loss


if __name__ == "__main__":
    Scaling.main()
