"""A program that crashed and whose script said that all went well: its log knows better than its exit status."""

from __future__ import annotations

import re
from pathlib import Path

from cotenant.finding import Finding
from cotenant.launch.log_end import log_end

TAIL_BYTES = 1 << 14
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):$", re.MULTILINE)
_LAST_LINE = re.compile(r"^[\w.]*(Error|Exception|Interrupt|Exit)\b.*$")


def crashed(log: Path) -> Finding | None:
    """Return what is to be said of a log whose last words are an error that Python did not catch."""
    text = log_end(log, TAIL_BYTES)
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not _TRACEBACK.search(text) or not _LAST_LINE.match(lines[-1]):
        return None
    return Finding(
        "crashed",
        "error",
        f"It ended with exit status 0, and its log with an error: {lines[-1][:200]}",
        "Let the script end with the status of what it started: put `exec` before it, or `set -e` at its top.",
    )
