"""Polynomial regression, written as a plain script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn


def script(batch_size: int) -> Iterator[Any]:
    """Yield the model, then the loss of each step."""
    device = torch.device("cpu")
    weights, bias, powers = torch.randn(4, 1) * 5, torch.randn(1) * 5, torch.arange(1, 5)
    model, criterion = nn.Linear(4, 1).to(device), nn.SmoothL1Loss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    yield model
    while True:
        x = torch.randn(batch_size, 1) ** powers
        y = x @ weights + bias
        x, y = x.to(device), y.to(device)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss
