"""The scaling of a classifier's training over devices and nodes, on resident random images or on files.

python main.py --network resnet101 --batch-size 128        (one device; run.sh --devices 4 starts four)
"""

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import torch
from torch import nn

from cotenant.bench import Distributed, Run, flag, main
from cotenant.bench.classifiers import CLASSES, classifier
from cotenant.bench.images import Images, Normalise, class_folders, crop_by_torchvision
from cotenant.errors import CotenantError


class Scaling(Distributed):
    """One step = one SGD update on `batch-size` images on each of the devices."""

    item = "image"
    same_shapes = True
    fast_channels_last = True
    # The flags of Horovod's synthetic benchmark, copied by Ray's. Both warm up for a number of batches, the harness
    # until steps are steady.
    aliases: ClassVar[dict[str, str]] = {
        "--model": "--network",
        "--num-iters": "--repeat",
        "--num-batches-per-iter": "--number",
        "--use-fp16": "--precision fp16",
        "--fp16-allreduce": "--gradient-compression fp16",
    }
    ignored: ClassVar[dict[str, int]] = {"--num-warmup-batches": 1}

    batch_size: int = flag(128, "--batch-size", "-b", help="images in one batch, per device")
    repeat: int = 10
    number: int = 10
    network: str = flag("resnet101", help="a classifier of torchvision, by its name there")
    size: int = flag(224, help="pixels of an image's side")
    lr: float = flag(0.01, help="learning rate")

    def build(self, run: Run) -> None:
        self.model = self.distribute(run, classifier(self.network, "--network", self.size))
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = run.sgd(self.model.parameters(), lr=self.lr, momentum=0.9, weight_decay=1e-4)

    def batches(self, run: Run) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        if self.data is None:
            images = torch.randn(self.batch_size, 3, self.size, self.size)
            return run.resident(images, torch.randint(CLASSES, (self.batch_size,)))
        found = class_folders(run.files(), run.remedy)
        if len(found.classes) > CLASSES:
            raise CotenantError(f"{self.data} holds {len(found.classes)} classes, and the model knows {CLASSES}.")
        images_of = Images(found.paths, partial(crop_by_torchvision, size=self.size), run.remedy, found.labels)
        normalise = Normalise(run.device)
        return ((normalise(pixels), labels) for pixels, labels in run.loader(images_of))

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        loss = self.loss(self.model(images), labels)
        run.update(loss, self.optimizer)
        return loss


if __name__ == "__main__":
    main(Scaling)
