"""The keys and values of positions seen by a layer, in memory taken once, so that every step is the same work."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class KeyValueCache(nn.Module):
    """One layer's keys and values of up to `context` positions of each sequence, (b, kv heads, context, d)."""

    keys: Tensor
    values: Tensor

    def __init__(self, batch: int, kv_heads: int, context: int, head: int) -> None:
        super().__init__()
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(batch, kv_heads, context, head), persistent=False)

    def store(self, k_bhld: Tensor, v_bhld: Tensor, at_l: Tensor | None) -> tuple[Tensor, Tensor]:
        """Store the keys and values of the positions `at_l`, and return the attended positions: the whole cache.

        Without `at_l` they are the first positions, and there is nothing before them: they are returned themselves.
        """
        if at_l is None:
            length = k_bhld.size(2)
            self.keys[:, :, :length].copy_(k_bhld)
            self.values[:, :, :length].copy_(v_bhld)
            return k_bhld, v_bhld
        self.keys.index_copy_(2, at_l, k_bhld.to(self.keys.dtype))
        self.values.index_copy_(2, at_l, v_bhld.to(self.values.dtype))
        return self.keys, self.values
