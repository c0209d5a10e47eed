"""Tacotron 2: an encoder of characters, attention that moves along them, and a decoder of mel frames.

Shen et al. 2018, "Natural TTS synthesis by conditioning WaveNet on mel spectrogram predictions"; location-sensitive
attention of Chorowski et al. 2015. Shapes: b batch, s characters, f frames, m mel bands, e units of the encoder,
u units of the recurrent layers, a units of the attention.

All frames are known in training, so only attention and the recurrent layer that moves it run frame by frame; every
other layer runs over whole sequences.
"""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

SYMBOLS, BANDS, PAD = 148, 80, 0
KERNEL = 5
PRENET, ATTENTION = 256, 128
LOCATION_KERNEL, LOCATION_FILTERS = 31, 32
CONVOLUTION_DROPOUT, RECURRENT_DROPOUT = 0.5, 0.1


class Tacotron2(nn.Module):
    """Maps characters and the frames so far to the next frame; 28,193,153 parameters with 512 and 1024 units."""

    def __init__(self, encoder: int, units: int) -> None:
        super().__init__()
        self.encoder = Encoder(encoder)
        self.prenet = Prenet()
        self.attending = Attending(encoder, units)
        self.decoder = nn.LSTM(units + encoder, units)
        self.dropout = nn.Dropout(RECURRENT_DROPOUT)
        self.frame = nn.Linear(units + encoder, BANDS)
        self.gate = nn.Linear(units + encoder, 1)
        self.postnet = Postnet(encoder)

    def forward(
        self, character_bs: torch.Tensor, length_b: torch.Tensor, mel_bmf: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the mel bands (b, m, f), the same refined, and the logits (b, f) that a frame is the last one.

        `length_b` holds the numbers of characters, longest first, on the host.
        """
        memory_bse = self.encoder(character_bs, length_b)
        # The frame before each one; before the first there is one of zeros.
        before_fbm = F.pad(mel_bmf, (1, 0))[..., :-1].permute(2, 0, 1)
        hidden_fbu, context_fbe = self.attending(self.prenet(before_fbm), memory_bse, character_bs == PAD)
        decoded_fbu, _ = self.decoder(torch.cat([hidden_fbu, context_fbe], dim=2))
        decoded_fbz = torch.cat([self.dropout(decoded_fbu), context_fbe], dim=2)
        coarse_bmf = self.frame(decoded_fbz).permute(1, 2, 0)
        return coarse_bmf, coarse_bmf + self.postnet(coarse_bmf), self.gate(decoded_fbz).squeeze(2).T


class Encoder(nn.Module):
    """Three convolutions along the characters and a bidirectional LSTM."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, units)
        self.convolutions = nn.Sequential(*(convolution(units, units, nn.ReLU()) for _ in range(3)))
        self.both_ways = nn.LSTM(units, units // 2, bidirectional=True, batch_first=True)

    def forward(self, character_bs: torch.Tensor, length_b: torch.Tensor) -> torch.Tensor:
        x_bse = self.convolutions(self.embedding(character_bs).transpose(1, 2)).transpose(1, 2)
        # Packed, so that the backward direction begins at each text's own last character.
        packed, _ = self.both_ways(pack_padded_sequence(x_bse, length_b, batch_first=True))
        memory_bse, _ = pad_packed_sequence(packed, batch_first=True)
        return memory_bse


class Prenet(nn.Module):
    """Two layers that drop half of the previous frame, so that the decoder has to read the text."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(BANDS, PRENET, bias=False)
        self.second = nn.Linear(PRENET, PRENET, bias=False)
        self.dropout = nn.Dropout(CONVOLUTION_DROPOUT)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(F.relu(self.second(self.dropout(F.relu(self.first(x))))))


class Attending(nn.Module):
    """A recurrent layer and the attention that it moves: score = v . tanh(W h + U m + V (location * weights))."""

    def __init__(self, encoder: int, units: int) -> None:
        super().__init__()
        self.recurrent = nn.LSTMCell(PRENET + encoder, units)
        self.query = nn.Linear(units, ATTENTION, bias=False)  # W
        self.key = nn.Linear(encoder, ATTENTION, bias=False)  # U
        self.location = nn.Conv1d(2, LOCATION_FILTERS, LOCATION_KERNEL, bias=False)
        self.spreading = nn.Linear(LOCATION_FILTERS, ATTENTION, bias=False)  # V
        self.score = nn.Linear(ATTENTION, 1, bias=False)  # v
        self.dropout = nn.Dropout(RECURRENT_DROPOUT)

    def forward(
        self, prenet_fbp: torch.Tensor, memory_bse: torch.Tensor, padding_bs: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return every frame's hidden state (f, b, u) and the context (f, b, e) that it has attended to."""
        batch = memory_bse.size(0)
        hidden_bu = cell_bu = memory_bse.new_zeros(batch, self.recurrent.hidden_size)
        context_be = memory_bse.new_zeros(batch, memory_bse.size(2))
        # Two linear maps with nothing in between are one.
        filters_a2k = torch.einsum("ac,cnk->ank", self.spreading.weight, self.location.weight)
        key_bas = self.key(memory_bse).transpose(1, 2)
        # The last frame's weights and the sum of all so far; in fp32, as many small numbers are added.
        weight_b2s = torch.zeros(batch, 2, memory_bse.size(1), device=memory_bse.device)
        hidden_f, context_f = [], []
        for prenet_bp in prenet_fbp.unbind():
            hidden_bu, cell_bu = self.recurrent(torch.cat([prenet_bp, context_be], dim=1), (hidden_bu, cell_bu))
            hidden_bu = self.dropout(hidden_bu)
            location_bas = F.conv1d(weight_b2s, filters_a2k, padding=LOCATION_KERNEL // 2)
            feature_bas = (key_bas + location_bas + self.query(hidden_bu).unsqueeze(2)).tanh()
            score_bs = (self.score.weight @ feature_bas).squeeze(1).masked_fill(padding_bs, -torch.inf)
            weight_bs = score_bs.float().softmax(dim=1)
            context_be = (weight_bs.unsqueeze(1) @ memory_bse).squeeze(1)
            weight_b2s = torch.stack([weight_bs, weight_b2s[:, 1] + weight_bs], dim=1)
            hidden_f.append(hidden_bu)
            context_f.append(context_be)
        return torch.stack(hidden_f), torch.stack(context_f)


class Postnet(nn.Sequential):
    """Five convolutions along the frames, which add details that the decoder has left out."""

    def __init__(self, units: int) -> None:
        super().__init__(
            convolution(BANDS, units, nn.Tanh()),
            *(convolution(units, units, nn.Tanh()) for _ in range(3)),
            convolution(units, BANDS, nn.Identity()),
        )


def convolution(inward: int, outward: int, activation: nn.Module) -> nn.Sequential:
    """Return a convolution of kernel 5 with its batch norm, activation and dropout."""
    return nn.Sequential(
        nn.Conv1d(inward, outward, KERNEL, padding=KERNEL // 2),
        nn.BatchNorm1d(outward),
        activation,
        nn.Dropout(CONVOLUTION_DROPOUT),
    )
