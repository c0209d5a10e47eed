"""Limits the nesting of foreign JSON values, as code that stores them descends by recursion."""

from __future__ import annotations

from typing import Any

DEEPEST = 64
"""Most levels; a benchmark's record has fewer than ten."""


def is_deep(value: dict[str, Any]) -> bool:
    """Return whether a decoded value has more than DEEPEST levels."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        inner = (item for outer in level for item in (outer.values() if isinstance(outer, dict) else outer))
        level = [item for item in inner if isinstance(item, (dict, list))]
        if not level:
            return False
    return True
