"""Whole texts that people look at are kept in files: a change of one shows, and is to be read before it is kept."""

from __future__ import annotations

import os
from pathlib import Path


def check_golden(path: Path, text: str) -> None:
    """Assert that the file holds this text; with `GOLDEN=write` write it there first."""
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()
