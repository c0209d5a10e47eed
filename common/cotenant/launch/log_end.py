"""The end of a tenant's log, in which it says what happened to it."""

from __future__ import annotations

from pathlib import Path


def log_end(log: Path, limit_bytes: int) -> str:
    """Return at most so many of the last bytes as text, nothing where the log cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - limit_bytes))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
