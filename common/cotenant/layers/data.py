"""Random input of a real set's shape and statistics."""

from __future__ import annotations

import math

import torch

GOLDEN = (math.sqrt(5) - 1) / 2


def zipf(words: int, *shape: int) -> torch.Tensor:
    """Return words as frequent as those of real text: the one of rank r about 1 / r as frequent as the first (Zipf)."""
    return ((words + 1) ** torch.rand(*shape, dtype=torch.float64)).long().clamp_(max=words) - 1


def scattered(ranks: torch.Tensor, rows: int) -> torch.Tensor:
    """Return a row of its own for each rank below `rows`, such that frequent ones stand far from one another.

    Each rank's row is a step behind that of the rank before. A step of about the golden section of the rows spreads the
    first ranks evenly (Knuth, "The art of computer programming" 3, 6.4), and one that shares no divisor with the number
    of rows comes to all of them.
    """
    step = round(GOLDEN * rows)
    while math.gcd(step, rows) != 1:
        step += 1
    return ranks * step % rows
