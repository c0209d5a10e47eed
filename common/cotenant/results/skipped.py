"""What of the files could not be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or what of it could not be read, and why."""

    path: str
    reason: str
