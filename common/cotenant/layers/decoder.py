"""The decoder of Llama (Touvron et al. 2023): RMSNorm, rotary positions, grouped queries and SwiGLU, no biases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cotenant.layers.attention import Attention, head_width
from cotenant.layers.cache import KeyValueCache
from cotenant.layers.layers import ResidualLayer, RMSNorm, SwiGLU
from cotenant.layers.rotary import Rotary

EPS = 1e-5


@dataclass(frozen=True, slots=True)
class DecoderSize:
    """The size of a decoder: `inner` units of the feed-forward layers, `theta` of the rotary positions."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int
    words: int
    context: int
    theta: float = 10_000.0
    tied: bool = False

    @property
    def head(self) -> int:
        return head_width(self.width, self.heads, self.kv_heads)

    @property
    def weights_of_layer(self) -> int:
        """The weights of one layer's matrices: of queries and the output, of keys and values, of the gated part."""
        return 2 * self.width**2 + 2 * self.kv_heads * self.head * self.width + 3 * self.width * self.inner


class DecoderLayer(ResidualLayer):
    """A residual layer with causal attention and RMSNorms."""

    def __init__(self, size: DecoderSize, feed_forward: nn.Module) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(size.width, eps=EPS)
        self.attention = Attention(size.width, size.heads, size.kv_heads, bias=False, causal=True)
        self.feed_forward_norm = RMSNorm(size.width, eps=EPS)
        self.feed_forward = feed_forward


class Decoder(nn.Module):
    """Words to logits of the word after each one; `feed_forward` makes another feed-forward part than SwiGLU."""

    def __init__(self, size: DecoderSize, feed_forward: Callable[[DecoderSize], nn.Module] | None = None) -> None:
        super().__init__()
        make = feed_forward or (lambda size: SwiGLU(size.width, size.inner))
        self.size = size
        self.embedding = nn.Embedding(size.words, size.width)
        self.layers = nn.ModuleList(DecoderLayer(size, make(size)) for _ in range(size.layers))
        self.norm = RMSNorm(size.width, eps=EPS)
        self.words = nn.Linear(size.width, size.words, bias=False)
        if size.tied:
            self.words.weight = self.embedding.weight
        self.rotary = Rotary(size.head, size.context, size.theta)

    def caches(self, batch: int) -> nn.ModuleList:
        """Return an empty cache for every layer, of `batch` sequences of the whole context, beside the weights."""
        size = self.size
        caches = [KeyValueCache(batch, size.kv_heads, size.context, size.head) for _ in self.layers]
        return nn.ModuleList(caches).to(self.embedding.weight)

    def forward(self, tokens_bl: Tensor, caches: nn.ModuleList | None = None, at_l: Tensor | None = None) -> Tensor:
        """Return the logits (b, l, v) of the word after each one; over `caches` of the last one's next, (b, 1, v)."""
        states_blw = self.states(tokens_bl, caches, at_l)
        return self.words(states_blw if caches is None else states_blw[:, -1:])

    def states(self, tokens_bl: Tensor, caches: nn.ModuleList | None = None, at_l: Tensor | None = None) -> Tensor:
        """Return the last layer's output for each position, (b, l, w).

        With `caches` keys and values are stored there. With `at_l` the l positions are these, on the device, and each
        sees the caches' positions up to itself; otherwise they are the first.
        """
        mask_ls = None
        if caches is not None and at_l is not None:
            mask_ls = torch.arange(self.size.context, device=at_l.device) <= at_l[:, None]
        rotation = self.rotary(tokens_bl.size(1), at_l)
        x_blw = self.embedding(tokens_bl)
        for index, layer in enumerate(self.layers):
            x_blw = layer(x_blw, rotation, None if caches is None else caches[index], at_l, mask_ls)
        return self.norm(x_blw)
