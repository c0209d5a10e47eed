"""Multi-head attention in one kernel, also of grouped queries, over a cache, and with rotated positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cotenant.errors import CotenantError
from cotenant.layers.cache import KeyValueCache
from cotenant.layers.rotary import Rotation, rotated


def head_width(width: int, heads: int, kv_heads: int) -> int:
    """Return the units of one head. Raises CotenantError if the heads do not share the width evenly."""
    if width % heads or heads % kv_heads:
        raise CotenantError(
            f"A width of {width} cannot be shared by {heads} heads, with {kv_heads} of keys and values.",
            "Give a width that is a multiple of the heads, which are a multiple of the heads of keys and values.",
        )
    return width // heads


class Attention(nn.Module):
    """Self-attention (Vaswani et al. 2017); with fewer `kv_heads` several heads share keys and values (Ainslie 2023).

    One product makes queries, keys and values; its rows of weights are in this order.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        kv_heads: int | None = None,
        *,
        bias: bool = True,
        causal: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads or heads
        self.head = head_width(width, self.heads, self.kv_heads)
        self.causal, self.dropout = causal, dropout
        self.sizes = [width, self.kv_heads * self.head, self.kv_heads * self.head]
        self.qkv = nn.Linear(width, sum(self.sizes), bias=bias)
        self.out = nn.Linear(width, width, bias=bias)

    def forward(
        self,
        x_blw: Tensor,
        rotation: Rotation | None = None,
        cache: KeyValueCache | None = None,
        at_l: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return (b, l, w): every position's mean of the values, weighted by how its query fits the keys.

        `mask` is True if a query sees a key, and replaces `causal`. With a cache and `at_l` the l positions are these,
        and keys and values are the whole cache's; with a cache alone they are its first.
        """
        q_bhld, k_bhsd, v_bhsd = (
            part.unflatten(-1, (-1, self.head)).transpose(1, 2) for part in self.qkv(x_blw).split(self.sizes, dim=-1)
        )
        if rotation is not None:
            q_bhld, k_bhsd = rotated(q_bhld, rotation), rotated(k_bhsd, rotation)
        if cache is not None:
            k_bhsd, v_bhsd = cache.store(k_bhsd, v_bhsd, at_l)
        grouped = self.kv_heads != self.heads
        if grouped and q_bhld.dtype == torch.float32 and q_bhld.device.type != "cpu":
            # Not every torch has a kernel for groups in fp32 there, and without one all scores lie in memory.
            k_bhsd, v_bhsd = (part.repeat_interleave(self.heads // self.kv_heads, dim=1) for part in (k_bhsd, v_bhsd))
            grouped = False
        y_bhld = F.scaled_dot_product_attention(
            q_bhld,
            k_bhsd,
            v_bhsd,
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=self.causal and mask is None,
            enable_gqa=grouped,
        )
        return self.out(y_bhld.transpose(1, 2).flatten(2))
