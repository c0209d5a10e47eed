"""The finding: what is said about a number's validity, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`rule` names the check; an `error` makes a completed launch INVALID; `remedy` may be empty."""

    rule: str
    """Name of the check."""
    severity: Severity
    """An `error` makes a completed launch INVALID."""
    sentence: str
    """What is the matter."""
    remedy: str = ""
    """How to mend it; may be empty."""
