"""How deep objects and lists may be nested in what others state: who keeps it goes down its levels by recursion."""

from __future__ import annotations

from typing import Any

DEEPEST = 64
"""Levels. A benchmark's record has fewer than ten."""


def is_deep(value: dict[str, Any]) -> bool:
    """Tell whether what was decoded is nested deeper than that."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        inner = (each for outer in level for each in (outer.values() if isinstance(outer, dict) else outer))
        level = [each for each in inner if isinstance(each, (dict, list))]
        if not level:
            return False
    return True
