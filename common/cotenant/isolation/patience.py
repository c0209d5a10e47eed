"""How long the end of many processes is waited for: a fork bomb's thousands take their time on a small host."""

from __future__ import annotations

import time
from collections.abc import Collection

NAMED = 8


class Patience:
    """Is due after every `limit_s`, and goes on as long as fewer are left than the time before."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._due_s = time.monotonic() + limit_s
        self._left: int | None = None

    def is_due(self) -> bool:
        return time.monotonic() > self._due_s

    def goes_on(self, pids: Collection[int]) -> bool:
        """Whether to wait for those that are left for another `limit_s`."""
        fewer = self._left is None or len(pids) < self._left
        self._left, self._due_s = len(pids), time.monotonic() + self._limit_s
        return fewer


def named(pids: Collection[int]) -> str:
    """Return `[1, 2]`, or the first few of many."""
    first = sorted(pids)[:NAMED]
    return f"{first}" + (f" and {len(pids) - NAMED} more" if len(pids) > NAMED else "")
