"""Sizes as people read them."""

from __future__ import annotations


def size_words(size_bytes: int) -> str:
    """Return bytes in decimal units: `31 MB`, `9.6 GB`."""
    size = float(size_bytes)
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 999.5 and len(units) > 1:
        size /= 1000
        del units[0]
    unit = units[0]
    return f"{size:.1f} {unit}" if size < 9.95 and unit != "bytes" else f"{size:.0f} {unit}"
