"""The word language model, written as a plain script: a GRU between two tables of words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class RNNModel(nn.Module):
    def __init__(self, words: int, emsize: int, nhid: int) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.encoder, self.decoder = nn.Embedding(words, emsize), nn.Linear(nhid, words)
        self.rnn = nn.GRU(emsize, nhid, 2, dropout=0.5)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, text: torch.Tensor, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        output, hidden = self.rnn(self.drop(self.encoder(text)), hidden)
        return self.decoder(self.drop(output)), hidden


def script(batch_size: int, words: int, emsize: int, nhid: int, precision: str = "fp32") -> Iterator[Any]:
    """Yield the model, then the loss of each step."""
    model = RNNModel(words, emsize, nhid)
    optimizer = torch.optim.SGD(model.parameters(), lr=20, fused=True)
    # Zipf's law: a text's frequent words are few.
    text = ((words + 1) ** torch.rand(36, batch_size, dtype=torch.float64)).long() - 1
    data, targets = text[:-1], text[1:].flatten()
    hidden = torch.zeros(2, batch_size, nhid)
    yield model
    while True:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            output, hidden = model(data, hidden.detach())
            loss = functional.cross_entropy(output.view(-1, words), targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        yield loss
