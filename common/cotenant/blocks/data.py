"""Random input of a real set's shape and statistics."""

from __future__ import annotations

import torch


def zipf(words: int, *shape: int) -> torch.Tensor:
    """Return words as frequent as those of real text: the one of rank r about 1 / r as frequent as the first (Zipf)."""
    return ((words + 1) ** torch.rand(*shape, dtype=torch.float64)).long().clamp_(max=words) - 1
