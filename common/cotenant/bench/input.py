"""One look at the first batch, before any clock: input that is constant flatters a device.

Products of zeros take less power than products of numbers, and so run at higher clocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from cotenant.finding import Finding

ORDERED = frozenset(
    (
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
    )
)
LEAST_ELEMENTS = 16
"""Of fewer, all may be equal by chance."""


def constant_input(batch: Any) -> Finding | None:
    """Return what is to be said of a batch whose largest tensors all hold one value; labels may well do."""
    tensors = list(_tensors(batch))
    elements = max((one.numel() for one in tensors), default=0)
    if elements < LEAST_ELEMENTS:
        return None
    ends = [torch.aminmax(one) for one in tensors if one.numel() == elements]
    if any(low != high for low, high in ends):
        return None
    low = ends[0][0]
    return Finding(
        "constant_input",
        "error" if low == 0 else "warning",
        f"The first batch holds nothing but {low.item():g}, in all {elements} elements of its largest tensor.",
        "Fill batches with random or real data: devices compute with constants faster than with numbers.",
    )


def _tensors(batch: Any) -> Iterator[torch.Tensor]:
    """Yield the dense tensors of numbers in a batch, however deep they lie in it."""
    if isinstance(batch, torch.Tensor):
        if batch.layout is torch.strided and batch.dtype in ORDERED:
            yield batch
    elif isinstance(batch, dict):
        for part in batch.values():
            yield from _tensors(part)
    elif isinstance(batch, (tuple, list)):
        for part in batch:
            yield from _tensors(part)
