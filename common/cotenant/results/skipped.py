"""What of the files could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NAMED = 20
"""How many damaged parts of one file are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or what of it could not be read, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        """The sentence that says so."""
        return f"{self.path}: {self.reason}; skipped."


def said_of_skipped(skipped: Sequence[Skipped]) -> list[str]:
    """Return a sentence each, and where there are several how many they are."""
    lines = list(map(str, skipped))
    return [*lines, f"{len(lines)} files or parts of files are skipped."] if len(lines) > 1 else lines
