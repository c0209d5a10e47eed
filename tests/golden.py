"""Texts that people look at, kept whole: a change of one is seen, and is to be read before it is kept."""

from __future__ import annotations

import os
from pathlib import Path


def check_golden(path: Path, text: str) -> None:
    """Ask that this is what the file says; `GOLDEN=write` keeps it first."""
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()
