"""Rotary positions (Su et al. 2021): pairs of units turn with the position, each pair at a speed of its own."""

from __future__ import annotations

import torch
from torch import Tensor, nn

Rotation = tuple[Tensor, Tensor]
"""Cosines and sines of each position's angles, (l, d / 2) each."""


class Rotary(nn.Module):
    """The angles of all positions up to `context`: position / theta^(2 i / d) for the pair i."""

    cosines: Tensor
    sines: Tensor

    def __init__(self, head: int, context: int, theta: float) -> None:
        super().__init__()
        # In fp32 even if the model is not: 16 bits cannot tell one position of thousands from the next.
        rates_i = theta ** -(torch.arange(0, head, 2, dtype=torch.float32) / head)
        angles_li = torch.outer(torch.arange(context, dtype=torch.float32), rates_i)
        self.register_buffer("cosines", angles_li.cos(), persistent=False)
        self.register_buffer("sines", angles_li.sin(), persistent=False)

    def forward(self, length: int, at_l: Tensor | None = None) -> Rotation:
        """Return the rotation of the first `length` positions, or of the positions in `at_l`."""
        if at_l is None:
            return self.cosines[:length], self.sines[:length]
        return self.cosines.index_select(0, at_l), self.sines.index_select(0, at_l)


def rotated(x_bhld: Tensor, rotation: Rotation) -> Tensor:
    """Return queries or keys turned: unit i of the first half and unit i of the second are a pair."""
    cosines, sines = (table.to(x_bhld.dtype) for table in rotation)
    first, second = x_bhld.chunk(2, dim=-1)
    return torch.cat((first * cosines - second * sines, second * cosines + first * sines), dim=-1)
