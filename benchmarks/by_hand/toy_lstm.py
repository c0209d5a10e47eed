"""Sine waves predicted by two LSTM cells, written as a plain script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn


class Sequence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm1, self.lstm2, self.linear = nn.LSTMCell(1, 51), nn.LSTMCell(51, 51), nn.Linear(51, 1)

    def forward(self, waves: torch.Tensor) -> torch.Tensor:
        h1 = c1 = h2 = c2 = torch.zeros(len(waves), 51)
        outputs = []
        for x in waves.split(1, dim=1):
            h1, c1 = self.lstm1(x, (h1, c1))
            h2, c2 = self.lstm2(h1, (h2, c2))
            outputs.append(self.linear(h2))
        return torch.cat(outputs, dim=1)


def script(length: int) -> Iterator[Any]:
    """Yield the model, then the loss of each step."""
    waves = torch.sin(2 * torch.pi * (torch.arange(length) / 20 + torch.rand(97, 1)))
    inputs, targets = waves[:, :-1], waves[:, 1:]
    model, criterion = Sequence(), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    yield model
    while True:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss
