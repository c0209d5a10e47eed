"""Random input of a real set's shape and statistics."""

from __future__ import annotations

import torch

SCATTER = 1_000_003
"""A prime, and so a step that leads through all rows of a table that is no multiple of it."""


def zipf(words: int, *shape: int) -> torch.Tensor:
    """Return words as frequent as those of real text: the one of rank r about 1 / r as frequent as the first (Zipf)."""
    return ((words + 1) ** torch.rand(*shape, dtype=torch.float64)).long().clamp_(max=words) - 1


def scattered(ranks: torch.Tensor, rows: int) -> torch.Tensor:
    """Return a row of its own for each rank below `rows`, such that frequent ones do not stand beside one another."""
    return ranks * SCATTER % rows
