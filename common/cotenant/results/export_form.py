"""Recognises exported files by their first bytes, without importing polars."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from cotenant.files import content_of

ROWS = "cotenant-rows-1"
OBSERVATIONS = "cotenant-observations-1"
_MAGIC = b"PAR1"
_HEAD_BYTES = 1 << 16

ExportForm = Literal["parquet", "rows", "observations"]


def export_form(path: Path) -> ExportForm | None:
    """Return the form of an exported file; `rows` and `observations` are JSON lines. None for other files."""
    try:
        head = content_of(path, _HEAD_BYTES, follow=True)
    except OSError:
        return None
    if _names(head, OBSERVATIONS):
        return "observations"
    if head.startswith(_MAGIC) or path.suffix == ".parquet":
        return "parquet"
    return "rows" if _names(head, ROWS) else None


def _names(head: bytes, form: str) -> bool:
    return re.search(rb'"schema"\s*:\s*"' + form.encode() + b'"', head) is not None
