"""Image classification by any classifier of torchvision; ResNet-101 (He et al. 2015) where none is named.

python main.py --arch resnet101 --batch-size 64 [workspace/data/ImageNet/train --workers 8]
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import torch
import torchvision
from torch import nn
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2

from cotenant.bench import Benchmark, MissingDataError, Run, UnsupportedError, flag, positional
from cotenant.errors import CotenantError, did_you_mean

CLASSES = 1000
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# These two also return the logits of auxiliary classifiers, unless they are built without them.
WITH_AUXILIARY = ("googlenet", "inception_v3")


class ConvNet(Benchmark):
    """One step = one SGD update on a batch of images, cropped and flipped at random."""

    item = "image"

    batch_size: int = flag(64, "--batch-size", "-b", help="images in one batch, per device")
    workers: int = 8
    data: Path | None = positional(None, "a folder of images per class, instead of a random batch", "--data")
    arch: str = flag("resnet101", "--arch", "-a", help="a classifier of torchvision, by its name there")
    size: int = flag(224, help="pixels of an image's side")
    lr: float = flag(0.01, help="learning rate")
    momentum: float = flag(0.9, help="of SGD")
    weight_decay: float = flag(1e-4, help="of SGD")
    parallel: Literal["ddp", "dp"] = flag("ddp", help="over several devices: DDP, or one process with DataParallel")

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        if self.parallel == "dp" and self.cuda:
            # DataParallel deals one large batch out to the devices.
            self.batch_size *= max(1, torch.accelerator.device_count())

    def build(self, run: Run) -> None:
        torch.backends.cudnn.benchmark = True  # Every batch has the same shape.
        self.model = run.place(classifier(self.arch))
        if self.parallel == "dp":
            self.model = self.data_parallel(self.model)
        self.loss = nn.CrossEntropyLoss()
        # Fused: one pass over the weights, and it takes a gradient scaler's verdict without reading it on the host.
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), self.lr, momentum=self.momentum, weight_decay=self.weight_decay, fused=True
        )
        self.mean, self.std = (255 * torch.tensor(of_rgb, device=run.device).view(3, 1, 1) for of_rgb in (MEAN, STD))

    def batches(self, run: Run) -> Iterator[Any]:
        if self.data is None:
            images = torch.randn(self.batch_size, 3, self.size, self.size)
            return run.resident(images, torch.randint(CLASSES, (self.batch_size,)))
        # Bytes up to the device: a quarter of the traffic, and the slice's few processors only decode and crop.
        augment = v2.Compose([v2.RandomResizedCrop(self.size, antialias=True), v2.RandomHorizontalFlip()])
        try:
            images = ImageFolder(run.files(), transform=augment, loader=decode)
        except OSError as error:
            raise MissingDataError(f"{self.data}: {error}.", "Make the images with ./download_datasets.sh.") from error
        if len(images.classes) > CLASSES:
            raise CotenantError(f"{self.data} holds {len(images.classes)} classes, and the model knows {CLASSES}.")
        return (((images - self.mean).div_(self.std), labels) for images, labels in run.loader(images))

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        loss = self.loss(self.model(images), labels)
        run.update(loss, self.optimizer)
        return loss

    def data_parallel(self, model: nn.Module) -> nn.Module:
        """Return the model replicated over all visible devices in every step, as was done before DDP."""
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            raise CotenantError("--parallel dp is one process for all devices.", "Start it with run.sh.")
        if self.compile or self.asked_precision == "bf16":
            # Its threads neither run compiled modules nor inherit autocast's dtype: bf16 would become fp16.
            raise UnsupportedError("DataParallel can neither compile nor autocast to bf16.", "Use --parallel ddp.")
        return nn.DataParallel(model)


def classifier(name: str) -> nn.Module:
    """Return torchvision's classifier of this name with fresh weights. Raises CotenantError for an unknown one."""
    known = torchvision.models.list_models(module=torchvision.models)
    if name not in known:
        raise CotenantError(f"--arch {name}: torchvision has no such classifier.", did_you_mean(name, known))
    options = {"aux_logits": False, "init_weights": True} if name in WITH_AUXILIARY else {}
    return torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **options)


def decode(path: str) -> torch.Tensor:
    """Return one image as (3, height, width) bytes."""
    try:
        return decode_image(path, ImageReadMode.RGB)
    except RuntimeError as error:
        raise MissingDataError(f"{path} cannot be decoded: {error}.", "Remove it, or make the images again.") from error


if __name__ == "__main__":
    ConvNet.main()
