"""A classifier of torchvision, trained by a plain script, in one process or several ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torchvision.models import get_model


def script(batch_size: int, size: int, arch: str = "resnet101", precision: str = "fp32") -> Iterator[Any]:
    """Yield the model, then the loss of each step."""
    model, criterion = get_model(arch), nn.CrossEntropyLoss()
    if distributed.is_initialized():
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)
    images, labels = torch.randn(batch_size, 3, size, size), torch.randint(1000, (batch_size,))
    yield model
    while True:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss
