"""Many tests at once: how unlikely is it that any of them speaks by chance."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values in the given order (Holm, 1979). Raises ValueError for one outside [0, 1]."""
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError(f"p values {list(p_values)}")
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, most = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        most = max(most, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = most
    return adjusted
