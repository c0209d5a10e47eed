"""Super-resolution by sub-pixel convolution, written as a plain script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def script(batch_size: int, crop: int = 256) -> Iterator[Any]:
    """Yield the model, then the loss of each step."""
    model = nn.Sequential(
        nn.Conv2d(1, 64, 5, padding=2),
        nn.Tanh(),
        nn.Conv2d(64, 64, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(64, 32, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(32, 4, 3, padding=1),
        nn.PixelShuffle(2),
    )
    for layer in model[:-1:2]:
        nn.init.orthogonal_(layer.weight)
    optimizer, criterion = torch.optim.Adam(model.parameters(), lr=0.1, fused=True), nn.MSELoss()
    targets = (0.43 + 0.24 * torch.randn(batch_size, 1, crop, crop)).clamp(0, 1)
    inputs = functional.interpolate(targets, scale_factor=0.5, mode="bicubic", antialias=True).clamp(0, 1)
    yield model
    while True:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss
