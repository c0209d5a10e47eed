"""The diffusion Transformer (Peebles and Xie 2023, "Scalable diffusion models with Transformers").

Shapes: b images, l patches, w the width, c channels of a latent, p pixels of a patch's side.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from cotenant.layers.attention import Attention
from cotenant.layers.layers import FeedForward
from cotenant.layers.patches import patches

CHANNELS = 4
CLASSES = 1000
WAVES = 256
EPS = 1e-6


class AdaptiveLayer(nn.Module):
    """Attention and a feed-forward layer that the time and the class (`aim_bw`) shift, scale and gate."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width, elementwise_affine=False, eps=EPS)
        self.attention = Attention(width, heads)
        self.feed_forward_norm = nn.LayerNorm(width, elementwise_affine=False, eps=EPS)
        self.feed_forward = FeedForward(width, 4 * width, "tanh")
        self.modulation = nn.Linear(width, 6 * width)

    def forward(self, x_blw, aim_bw):
        parts = self.modulation(aim_bw)[:, None].chunk(6, dim=-1)
        shift, scale, gate, shift_ff, scale_ff, gate_ff = parts
        x_blw = x_blw + gate * self.attention(self.attention_norm(x_blw) * (1 + scale) + shift)
        return x_blw + gate_ff * self.feed_forward(self.feed_forward_norm(x_blw) * (1 + scale_ff) + shift_ff)


class DiT(nn.Module):
    """Maps noisy latents, their time and class to the noise in them and the position of its variance."""

    def __init__(self, layers: int, width: int, heads: int, patch: int, side: int) -> None:
        super().__init__()
        self.patch, self.side = patch, side
        self.into = nn.Linear(CHANNELS * patch**2, width)
        self.time = nn.Sequential(nn.Linear(WAVES, width), nn.SiLU(), nn.Linear(width, width))
        self.classes = nn.Embedding(CLASSES + 1, width)  # The last one is no class.
        self.layers = nn.ModuleList(AdaptiveLayer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=EPS)
        self.modulation = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, 2 * CHANNELS * patch**2)
        self.register_buffer("places_lw", grid_waves(side // patch, width), persistent=False)
        self._begin()

    def _begin(self) -> None:
        """Initialise as in the paper: at first every layer adds nothing, and the predicted noise is 0."""
        for part in self.modules():
            if isinstance(part, nn.Linear):
                nn.init.xavier_uniform_(part.weight)
                nn.init.zeros_(part.bias)
        for table in (self.classes, self.time[0], self.time[2]):
            nn.init.normal_(table.weight, std=0.02)
        for last in (self.out, self.modulation, *(layer.modulation for layer in self.layers)):
            nn.init.zeros_(last.weight)

    def forward(self, x_bchw, time_b, class_b):
        """Return (b, 2 c, side, side): the noise, and the position of its log variance between two bounds."""
        x_blw = self.into(patches(x_bchw, self.patch)) + self.places_lw
        aim_bw = F.silu(self.time(waves(time_b, WAVES)) + self.classes(class_b))
        for layer in self.layers:
            x_blw = layer(x_blw, aim_bw)
        shift, scale = self.modulation(aim_bw)[:, None].chunk(2, dim=-1)
        y_blo = self.out(self.norm(x_blw) * (1 + scale) + shift)
        rows = self.side // self.patch
        y_b = y_blo.unflatten(1, (rows, rows)).unflatten(3, (self.patch, self.patch, 2 * CHANNELS))
        return y_b.permute(0, 5, 1, 3, 2, 4).reshape(-1, 2 * CHANNELS, self.side, self.side)


def waves(at_n: torch.Tensor, size: int) -> torch.Tensor:
    """Return cosines and sines of these places, wavelengths from 2 pi to 10,000 times that: (n, size)."""
    half = size // 2
    rates_h = torch.exp(torch.arange(half, device=at_n.device, dtype=torch.float32) * (-math.log(10_000) / half))
    angles_nh = at_n[:, None].float() * rates_h
    return torch.cat((angles_nh.cos(), angles_nh.sin()), dim=1)


def grid_waves(rows: int, width: int) -> torch.Tensor:
    """Return fixed position vectors of rows x rows patches, half for the column and half for the row: (l, w)."""
    places = torch.arange(rows)
    across, down = (
        waves(axis, width // 2).roll(width // 4, 1) for axis in (places.repeat(rows), places.repeat_interleave(rows))
    )
    return torch.cat((across, down), dim=1)
