"""Random input of a real set's shape and statistics."""

from __future__ import annotations

import math

import torch

GOLDEN = (math.sqrt(5) - 1) / 2


def zipf(words: int, *shape: int) -> torch.Tensor:
    """Return words as frequent as in real text: the word of rank r is about 1 / r as frequent as the first (Zipf)."""
    return ((words + 1) ** torch.rand(*shape, dtype=torch.float64)).long().clamp_(max=words) - 1


def scattered(ranks: torch.Tensor, rows: int) -> torch.Tensor:
    """Return a row of its own for each rank below `rows`, such that frequent ranks are far from one another.

    Each rank's row is a step after the row of the rank before. A step of about the golden section of the rows spreads
    the first ranks evenly (Knuth, "The art of computer programming" 3, 6.4), and one without a common divisor with the
    number of rows reaches all of them.
    """
    step = round(GOLDEN * rows)
    while math.gcd(step, rows) != 1:
        step += 1
    return ranks * step % rows
