"""Language models over words: a recurrent network, or a Transformer encoder that looks back only.

Zaremba et al. 2014, "Recurrent neural network regularization"; Vaswani et al. 2017, "Attention is all you need".
Shapes: t positions, b sequences, e embedding, h units, v words. Time comes first, as cuDNN reads it.
"""

import math

import torch
from torch import nn

INIT = 0.1


class Recurrent(nn.Module):
    """Embedding, recurrent layers and a linear layer to words; takes a state and returns the next one."""

    def __init__(self, kind: str, words: int, emsize: int, nhid: int, nlayers: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.embedding = nn.Embedding(words, emsize)
        between = dropout if nlayers > 1 else 0.0
        if kind in ("LSTM", "GRU"):
            self.recurrent = getattr(nn, kind)(emsize, nhid, nlayers, dropout=between)
        else:
            nonlinearity = kind.removeprefix("RNN_").lower()
            self.recurrent = nn.RNN(emsize, nhid, nlayers, nonlinearity=nonlinearity, dropout=between)
        self.words = begun(nn.Linear(nhid, words))
        nn.init.uniform_(self.embedding.weight, -INIT, INIT)

    def forward(self, text_tb, state):
        """Return the logits (t, b, v) of the word after each one, and the state after the last."""
        x_tbe = self.dropout(self.embedding(text_tb))
        y_tbh, state = self.recurrent(x_tbe, state)
        return self.words(self.dropout(y_tbh)), state


class Transformer(nn.Module):
    """Embedding, sinusoidal positions, encoder layers under a causal mask and a linear layer to words; no state."""

    def __init__(self, words: int, emsize: int, nhid: int, nlayers: int, nhead: int, dropout: float, bptt: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.embedding = nn.Embedding(words, emsize)
        layer = nn.TransformerEncoderLayer(emsize, nhead, nhid, dropout)
        self.encoder = nn.TransformerEncoder(layer, nlayers, enable_nested_tensor=False)
        self.words = begun(nn.Linear(emsize, words))
        nn.init.uniform_(self.embedding.weight, -INIT, INIT)
        self.register_buffer("position_t1e", positions(bptt, emsize), persistent=False)
        self.register_buffer("mask_tt", nn.Transformer.generate_square_subsequent_mask(bptt), persistent=False)

    def forward(self, text_tb, state):
        """Return the logits (t, b, v) of the word after each one, and `state` as it came."""
        x_tbe = self.embedding(text_tb) * math.sqrt(self.embedding.embedding_dim)
        # `is_causal` is given, as torch would otherwise compare the mask's values on the host.
        y_tbe = self.encoder(self.dropout(x_tbe + self.position_t1e), self.mask_tt, is_causal=True)
        return self.words(y_tbe), state


def begun(linear: nn.Linear) -> nn.Linear:
    """Return the layer with small random weights and without bias to any word."""
    nn.init.uniform_(linear.weight, -INIT, INIT)
    nn.init.zeros_(linear.bias)
    return linear


def positions(length: int, emsize: int) -> torch.Tensor:
    """Return sines and cosines of every position, wavelengths from 2 pi to 10000 times that: (t, 1, e)."""
    position_t1 = torch.arange(length).unsqueeze(1)
    rate_f = torch.exp(torch.arange(0, emsize, 2) * (-math.log(10_000.0) / emsize))
    angle_tf = position_t1 * rate_f
    return torch.stack([angle_tf.sin(), angle_tf.cos()], dim=2).flatten(1)[:, None, :emsize]
