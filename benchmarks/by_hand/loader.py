"""Reading images, written as a plain script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2


def script(batch_size: int, data: Path) -> Iterator[Any]:
    """Yield a module without parameters, since nothing is trained, then None for each batch that has arrived."""
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(224, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )
    images = ImageFolder(data, transform, loader=lambda path: decode_image(path, ImageReadMode.RGB))
    loader = DataLoader(images, batch_size, shuffle=True, drop_last=True)
    yield nn.Identity()
    while True:
        for _images, _labels in loader:
            yield None
