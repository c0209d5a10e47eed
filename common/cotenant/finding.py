"""The finding: what is said about a number's validity, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
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


def survived(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return what was said of a host before a launch as that launch's records keep it: without errors.

    A full disk or an old fault of some device's memory spoils no number of a launch that ran all the same.
    """
    return tuple(replace(one, severity="warning") if one.severity == "error" else one for one in findings)
