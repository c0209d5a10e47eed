"""Image classification by any classifier of torchvision; by default ResNet-101 (He et al. 2015).

python main.py --arch resnet101 --batch-size 64 [workspace/data/ImageNet/train --workers 8]
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import distributed, nn

from cotenant.bench import Benchmark, Run, UnsupportedError, flag, main, positional
from cotenant.bench.classifiers import CLASSES, classifier
from cotenant.bench.images import Images, Normalise, class_folders, crop_by_torchvision
from cotenant.errors import CotenantError


class ConvNet(Benchmark):
    """One step = one SGD update on a batch of images, cropped and flipped at random."""

    item = "image"
    same_shapes = True
    fast_channels_last = True

    batch_size: int = flag(64, "--batch-size", "-b", help="images in one batch, per device")
    data: Path | None = positional(None, "a folder of images per class, instead of a random batch", "--data")
    arch: str = flag("resnet101", "--arch", "-a", help="a classifier of torchvision, by its name there")
    size: int = flag(224, help="pixels of an image's side")
    lr: float = flag(0.01, help="learning rate")
    momentum: float = flag(0.9, help="of SGD")
    weight_decay: float = flag(1e-4, help="of SGD")
    parallel: Literal["ddp", "dp"] = flag("ddp", help="over several devices: DDP, or one process with DataParallel")

    backend: Literal["nccl", "gloo"] | None = flag(
        None, help="what several ranks meet by; unsaid, what suits the device"
    )

    def __init__(self, **parameters: Any) -> None:
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            self.fixed = {**self.fixed, "backend": None}  # A single process needs no backend.
        super().__init__(**parameters)
        if self.parallel == "dp" and self.cuda:
            # DataParallel splits one large batch over the devices.
            self.batch_size *= max(1, torch.accelerator.device_count())

    def build(self, run: Run) -> None:
        if run.world.size > 1:
            met_by = run.observed["backend"] = distributed.get_backend()
            if self.backend not in (None, met_by):
                raise UnsupportedError(
                    f"Ranks on {run.device.type} meet by {met_by} here, not by {self.backend}.",
                    f"Leave --backend out, or say {met_by}.",
                )
        place = run.replicate if self.parallel == "dp" else run.place
        self.model = place(classifier(self.arch, "--arch", self.size))
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = run.sgd(
            self.model.parameters(), lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay
        )

    def batches(self, run: Run) -> Iterator[Any]:
        if self.data is None:
            images = torch.randn(self.batch_size, 3, self.size, self.size)
            return run.resident(images, torch.randint(CLASSES, (self.batch_size,)))
        found = class_folders(run.files(), run.remedy)
        if len(found.classes) > CLASSES:
            raise CotenantError(f"{self.data} holds {len(found.classes)} classes, and the model knows {CLASSES}.")
        images = Images(found.paths, partial(crop_by_torchvision, size=self.size), run.remedy, found.labels)
        # Pixels stay bytes up to the device: a quarter of the traffic, and the processors only decode and crop.
        normalise = Normalise(run.device)
        return ((normalise(pixels), labels) for pixels, labels in run.loader(images))

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        loss = self.loss(self.model(images), labels)
        run.update(loss, self.optimizer)
        return loss


if __name__ == "__main__":
    main(ConvNet)
