"""GNMT, written as a plain script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

PAD, BOS, EOS = 0, 2, 3


class Attention(nn.Module):
    """Additive attention whose vector is normalised."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(units, units), nn.Linear(units, units, bias=False)
        self.vector, self.scale = nn.Parameter(torch.empty(units)), nn.Parameter(torch.empty(1))

    def forward(self, queries: torch.Tensor, memory: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.query(queries).unsqueeze(1) + self.key(memory).unsqueeze(0))
        scores = hidden @ (self.scale * self.vector / self.vector.norm())
        weights = scores.masked_fill(padding, -torch.inf).softmax(dim=1)
        return torch.einsum("tsb,sbh->tbh", weights, memory)


class GNMT(nn.Module):
    def __init__(self, words: int, units: int) -> None:
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(words, units, padding_idx=PAD), nn.Dropout(0.2)
        self.both_ways, self.narrow = nn.LSTM(units, units, bidirectional=True), nn.LSTM(2 * units, units)
        self.encoder = nn.ModuleList(nn.LSTM(units, units) for _ in range(2))
        self.first, self.attention = nn.LSTM(units, units), Attention(units)
        self.decoder = nn.ModuleList(nn.LSTM(2 * units, units) for _ in range(3))
        self.classifier = nn.Linear(units, words)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)
        nn.init.constant_(self.attention.scale, units**-0.5)
        nn.init.zeros_(self.attention.query.bias)

    def encode(self, source: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        x = self.dropout(self.embedding(source))
        x, _ = pad_packed_sequence(self.both_ways(pack_padded_sequence(x, lengths))[0])
        x, _ = self.narrow(self.dropout(x))
        for layer in self.encoder:
            x = x + layer(self.dropout(x))[0]
        return x

    def forward(self, source: torch.Tensor, lengths: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        memory = self.encode(source, lengths)
        x, _ = self.first(self.dropout(self.embedding(target)))
        context = self.attention(x, memory, source == PAD)
        for index, layer in enumerate(self.decoder):
            y, _ = layer(torch.cat([self.dropout(x), context], dim=2))
            x = x + y if index else y
        return self.classifier(x)


def sentences(batch_size: int, words: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sentences (time, batch) of 21 to 30 words and EOS, padded, and their lengths, the longest first."""
    lengths = torch.randint(21, 31, (batch_size,)).sort(descending=True).values
    # Zipf's law: a text's frequent words are few.
    text = 3 + ((words - 3) ** torch.rand(lengths.max() + 1, batch_size)).long()
    place = torch.arange(len(text)).unsqueeze(1)
    return text.masked_fill(place == lengths, EOS).masked_fill(place > lengths, PAD), lengths + 1


def script(batch_size: int, words: int, hidden: int) -> Iterator[Any]:
    """Yield the model, then the loss of each step."""
    model, criterion = GNMT(words, hidden), nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    (source, lengths), (target, _) = sentences(batch_size, words), sentences(batch_size, words)
    begun = torch.cat([torch.full((1, batch_size), BOS), target[:-1]])
    yield model
    while True:
        logits = model(source, lengths, begun)
        loss = criterion(logits.view(-1, words), target.view(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        yield loss
