"""Neural collaborative filtering, written as a plain script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

USERS, ITEMS = 138_493, 26_744


class NeuMF(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.user_gmf, self.item_gmf = nn.Embedding(USERS, 64), nn.Embedding(ITEMS, 64)
        self.user_mlp, self.item_mlp = nn.Embedding(USERS, 128), nn.Embedding(ITEMS, 128)
        for table in (self.user_gmf, self.item_gmf, self.user_mlp, self.item_mlp):
            nn.init.normal_(table.weight, std=0.01)
        self.mlp = nn.Sequential(
            nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU()
        )
        self.score = nn.Linear(128, 1)

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        gmf = self.user_gmf(user) * self.item_gmf(item)
        mlp = self.mlp(torch.cat([self.user_mlp(user), self.item_mlp(item)], dim=1))
        return self.score(torch.cat([gmf, mlp], dim=1)).squeeze(1)


def script(batch_size: int) -> Iterator[Any]:
    """Yield the model, then the loss of each step."""
    model, criterion = NeuMF(), nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0005, fused=True)
    user, item = torch.randint(USERS, (batch_size,)), torch.randint(ITEMS, (batch_size,))
    label = (torch.rand(batch_size) < 0.2).float()
    yield model
    while True:
        loss = criterion(model(user, item), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss
