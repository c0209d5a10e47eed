"""Names files, and parts of files, that no reader could use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NAMED = 20
"""The most damaged parts of one file that are named; further parts are counted."""
EDITED = "it is not what its launch wrote: the journal beside it has another SHA-256"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or a part of one, that could not be read. `reason` is a clause, or a noun if there is a `remedy`."""

    path: str
    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return the sentence on it."""
        if self.remedy:
            return f"{self.path}: {self.reason} skipped; {self.remedy}."
        return f"{self.path}: {self.reason}; skipped."


def skipped_sentences(skipped: Sequence[Skipped]) -> list[str]:
    """Return a sentence for each, and if there are several one with their number."""
    lines = list(map(str, skipped))
    return [*lines, f"{len(lines)} files or parts of files are skipped."] if len(lines) > 1 else lines


class ForeignError(ValueError):
    """The object is neither a record of ours nor of the original suite. The message says why."""
