"""How much of what was measured lies inside the load common to all tenants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Span = tuple[int, int]


def common_load(loads: Sequence[Span]) -> Span:
    """Return [latest start, earliest end] of the tenants' loads, in ns; empty spans have their end at their start."""
    start_ns = max(start for start, _ in loads)
    return start_ns, max(start_ns, min(end for _, end in loads))


def overlap(observations: Iterable[Span], common: Span) -> float:
    """Return the share of the observations' time that lies inside `common`.

    Raises ValueError for an observation that ends before it starts, and where none took any time.
    """
    inside_ns = total_ns = 0
    for start_ns, end_ns in observations:
        if end_ns < start_ns:
            raise ValueError(f"an observation from {start_ns} to {end_ns}")
        total_ns += end_ns - start_ns
        inside_ns += max(0, min(end_ns, common[1]) - max(start_ns, common[0]))
    if not total_ns:
        raise ValueError("no observed time")
    return inside_ns / total_ns
