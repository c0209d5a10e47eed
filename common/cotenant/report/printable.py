"""Text from files and logs, where people look."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def printable(text: str) -> str:
    """Job names and messages come from files and logs: one line, without a terminal's control sequences."""
    line = " ".join(_ESCAPE.sub("", text).split())
    return "".join(char if char.isprintable() else "?" for char in line)
