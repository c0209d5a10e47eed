"""What a benchmark prints: a rule, its arguments, a line per observation, the record."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

RULE = "-" * 80


def argument_table(arguments: Mapping[str, Any]) -> str:
    """Return the arguments between two rules, names right-aligned in 30 columns."""
    lines = [f"{name:>30}: {_plain(value)}" for name, value in arguments.items()]
    return "\n".join([RULE, *lines, RULE])


def observation_line(index: int, repeat: int, eta_s: float, loss: float | None) -> str:
    """Return the line of observation `index` of `repeat`, with the minutes left and its last loss."""
    shown = f"{'none':>8}" if loss is None else f"{loss:8.4f}"
    return f"[{index:3d}/{repeat:3d}] | ETA: {eta_s / 60:6.2f} min | Batch Loss {shown}"


def record_block(record: Mapping[str, Any]) -> str:
    """Return the record as JSON between two rules."""
    return f"{RULE}\n{json.dumps(record, indent=1, default=str)}\n{RULE}"


class Progress:
    """Makes observation lines; the time left follows from the observations so far."""

    def __init__(self, repeat: int) -> None:
        self._repeat = repeat
        self._start_s = time.monotonic()

    def line(self, index: int, loss: float | None) -> str:
        elapsed_s = time.monotonic() - self._start_s
        eta_s = elapsed_s / (index + 1) * (self._repeat - index - 1)
        return observation_line(index, self._repeat, eta_s, loss)


def _plain(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
