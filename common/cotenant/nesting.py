"""Limits the nesting of foreign JSON values, as code that stores them descends by recursion."""

from __future__ import annotations

from typing import Any

DEEPEST = 64
"""Most levels; a benchmark's record has fewer than ten."""


def is_deep(value: dict[str, Any]) -> bool:
    """Return whether a decoded value has more than DEEPEST levels."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        inner = (each for outer in level for each in (outer.values() if isinstance(outer, dict) else outer))
        level = [each for each in inner if isinstance(each, (dict, list))]
        if not level:
            return False
    return True
