"""The auto-encoder, written as a plain script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20)
        self.fc3, self.fc4 = nn.Linear(20, 400), nn.Linear(400, 784)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        hidden = torch.relu(self.fc1(x))
        mean, log_variance = self.fc21(hidden), self.fc22(hidden)
        code = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return self.fc4(torch.relu(self.fc3(code))), mean, log_variance


def script(batch_size: int) -> Iterator[Any]:
    """Yield the model, then the loss of each step."""
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    x = (torch.rand(batch_size, 784) - 0.8).clamp(min=0) * 5
    yield model
    while True:
        logits, mean, log_variance = model(x)
        loss = functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        loss = loss - 0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss
