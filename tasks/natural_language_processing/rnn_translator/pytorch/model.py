"""GNMT version 2: LSTM layers with residuals around normalised additive attention.

Wu et al. 2016, "Google's neural machine translation system"; the attention is of Bahdanau et al. 2015, its
normalisation of Salimans and Kingma 2016. Shapes: s source positions, t target positions, b batch, h units, v words.
Time comes first, as cuDNN reads it. All target words are known in training, so every layer and the attention run
over whole sequences.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

PAD, UNK, BOS, EOS = range(4)
LAYERS = 4
INIT = 0.1


class GNMT(nn.Module):
    """Encoder and decoder over one embedding; 160,671,297 parameters with 32,320 words and 1024 units."""

    def __init__(self, words: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, hidden, padding_idx=PAD)
        self.encoder = Encoder(hidden, dropout)
        self.decoder = Decoder(words, hidden, dropout)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -INIT, INIT)
        self.decoder.attention.begin()

    def forward(self, source_sb: torch.Tensor, length_b: torch.Tensor, target_tb: torch.Tensor) -> torch.Tensor:
        """Return the logits (t, b, v) of the word after each target word.

        `length_b` holds the source lengths, longest first, on the host.
        """
        memory_sbh = self.encoder(self.embedding(source_sb), length_b)
        return self.decoder(self.embedding(target_tb), memory_sbh, source_sb == PAD)


class Encoder(nn.Module):
    """A bidirectional LSTM, one that narrows its two outputs to one, and two with residuals."""

    def __init__(self, hidden: int, dropout: float) -> None:
        super().__init__()
        self.both_ways = nn.LSTM(hidden, hidden, bidirectional=True)
        self.narrowing = nn.LSTM(2 * hidden, hidden)
        self.residual = nn.ModuleList(nn.LSTM(hidden, hidden) for _ in range(LAYERS - 2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_sbh: torch.Tensor, length_b: torch.Tensor) -> torch.Tensor:
        # Packed, so that the backward direction begins at each sentence's own last word. The layers after it only
        # look back: padding follows the words there and reaches none of them.
        packed, _ = self.both_ways(pack_padded_sequence(self.dropout(x_sbh), length_b))
        both_sbh, _ = pad_packed_sequence(packed)
        x_sbh, _ = self.narrowing(self.dropout(both_sbh))
        for layer in self.residual:
            y_sbh, _ = layer(self.dropout(x_sbh))
            x_sbh = x_sbh + y_sbh
        return x_sbh


class Decoder(nn.Module):
    """An LSTM that attends, three that read the attended context beside their input, and a linear layer to words."""

    def __init__(self, words: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.attending = nn.LSTM(hidden, hidden)
        self.attention = Attention(hidden)
        self.reading = nn.ModuleList(nn.LSTM(2 * hidden, hidden) for _ in range(LAYERS - 1))
        self.words = nn.Linear(hidden, words)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_tbh: torch.Tensor, memory_sbh: torch.Tensor, padding_sb: torch.Tensor) -> torch.Tensor:
        x_tbh, _ = self.attending(self.dropout(x_tbh))
        context_tbh = self.attention(x_tbh, memory_sbh, padding_sb)
        for number, layer in enumerate(self.reading, start=2):
            y_tbh, _ = layer(torch.cat([self.dropout(x_tbh), context_tbh], dim=2))
            x_tbh = y_tbh if number < 3 else x_tbh + y_tbh
        return self.words(x_tbh)


class Attention(nn.Module):
    """Normalised additive attention: score(q, k) = g v / |v| . tanh(W q + U k + b)."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden, hidden)  # W and b
        self.key = nn.Linear(hidden, hidden, bias=False)  # U
        self.v = nn.Parameter(torch.empty(hidden))
        self.g = nn.Parameter(torch.empty(1))

    def begin(self) -> None:
        """Set g and b to the start values of the published normalisation."""
        nn.init.constant_(self.g, self.v.numel() ** -0.5)
        nn.init.zeros_(self.query.bias)

    def forward(self, x_tbh: torch.Tensor, memory_sbh: torch.Tensor, padding_sb: torch.Tensor) -> torch.Tensor:
        """Return the context of every target position (t, b, h): the source's memory weighted by attention."""
        # The largest tensor of a step, so it is made once and turned into its tanh in place.
        features_tsbh = (self.query(x_tbh).unsqueeze(1) + self.key(memory_sbh)).tanh_()
        score_tsb = features_tsbh @ (self.g * self.v / self.v.norm())
        weight_bts = score_tsb.masked_fill(padding_sb, -torch.inf).softmax(dim=1).permute(2, 0, 1)
        return (weight_bts @ memory_sbh.transpose(0, 1)).transpose(0, 1)
