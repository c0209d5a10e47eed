"""Whisper (Radford et al. 2023, "Robust speech recognition via large-scale weak supervision").

Shapes: b clips, f frames of m mels, s = f / 2 positions of the encoder, l tokens, w the width, v the vocabulary.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from cotenant.layers.attention import Attention
from cotenant.layers.layers import FeedForward


class KeylessLinear(nn.Linear):
    """Queries, keys and values by one product; only queries and values have biases."""

    def __init__(self, width: int) -> None:
        super().__init__(width, 3 * width, bias=False)
        # Of one dimension each: in two they would decay as matrices do.
        self.query_bias, self.value_bias = (nn.Parameter(torch.zeros(width)) for _ in range(2))

    def forward(self, x_blw):
        bias = torch.cat((self.query_bias, torch.zeros_like(self.query_bias), self.value_bias))
        return F.linear(x_blw, self.weight, bias)


def attention(width: int, heads: int, causal: bool) -> Attention:
    """Return self-attention without biases of keys."""
    part = Attention(width, heads, causal=causal)
    part.qkv = KeylessLinear(width)
    return part


class CrossAttention(nn.Module):
    """Attention of a text's positions to a clip's."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.key, self.value = nn.Linear(width, width, bias=False), nn.Linear(width, width)

    def forward(self, x_blw, clip_bsw):
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query(x_blw), self.key(clip_bsw), self.value(clip_bsw))
        )
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Attention, in a decoder also to the clip, and a feed-forward layer, each after a LayerNorm and added."""

    def __init__(self, width: int, heads: int, is_decoder: bool) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(width), attention(width, heads, causal=is_decoder)
        if is_decoder:
            self.cross_norm, self.cross = nn.LayerNorm(width), CrossAttention(width, heads)
        self.feed_forward_norm, self.feed_forward = nn.LayerNorm(width), FeedForward(width, 4 * width)

    def forward(self, x_blw, clip_bsw=None):
        x_blw = x_blw + self.attention(self.attention_norm(x_blw))
        if clip_bsw is not None:
            x_blw = x_blw + self.cross(self.cross_norm(x_blw), clip_bsw)
        return x_blw + self.feed_forward(self.feed_forward_norm(x_blw))


class Whisper(nn.Module):
    """Maps mel frames and the tokens so far to logits of the token after each one."""

    def __init__(self, mels: int, frames: int, words: int, tokens: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(mels, width, 3, padding=1)
        self.second = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.register_buffer("places_sw", waves(frames // 2, width), persistent=False)
        self.encoder = nn.ModuleList(Layer(width, heads, is_decoder=False) for _ in range(layers))
        self.encoder_norm = nn.LayerNorm(width)
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.empty(tokens, width).normal_(std=0.02))
        self.decoder = nn.ModuleList(Layer(width, heads, is_decoder=True) for _ in range(layers))
        self.decoder_norm = nn.LayerNorm(width)
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, mel_bmf, tokens_bl):
        """Return the logits (b, l, v)."""
        clip_bsw = F.gelu(self.second(F.gelu(self.first(mel_bmf)))).transpose(1, 2) + self.places_sw
        for layer in self.encoder:
            clip_bsw = layer(clip_bsw)
        clip_bsw = self.encoder_norm(clip_bsw)
        x_blw = self.words(tokens_bl) + self.places[: tokens_bl.size(1)]
        for layer in self.decoder:
            x_blw = layer(x_blw, clip_bsw)
        return F.linear(self.decoder_norm(x_blw), self.words.weight)


def waves(positions: int, width: int) -> torch.Tensor:
    """Return sines, then cosines of every position, wavelengths from 2 pi to 10,000 times that: (s, w)."""
    half = width // 2
    rates_h = torch.exp(torch.arange(half) * (-math.log(10_000) / max(1, half - 1)))
    angles_sh = torch.outer(torch.arange(positions).float(), rates_h)
    return torch.cat((angles_sh.sin(), angles_sh.cos()), dim=1)
