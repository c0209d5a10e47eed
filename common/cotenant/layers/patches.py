"""Images as sequences (Dosovitskiy et al. 2021)."""

from __future__ import annotations

from torch import Tensor


def patches(x_bchw: Tensor, side: int) -> Tensor:
    """Return the squares of an image row by row, (b, l, c side side): a linear layer on them is their convolution."""
    x_bcrpqs = x_bchw.unflatten(3, (-1, side)).unflatten(2, (-1, side))
    return x_bcrpqs.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
