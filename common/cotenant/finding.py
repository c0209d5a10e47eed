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
    value: float | None = None
    """The measured quantity that the rule judged, in the unit of its sentence; null where it judged none."""
    effect: float | None = None
    """How much it can have moved the rate at the most, relative to the rate; null where that is unknown."""


def error(
    sentence: str, remedy: str = "", rule: str = "", value: float | None = None, effect: float | None = None
) -> Finding:
    """Return an error, which has the name of the rule or check that makes it where `rule` is empty."""
    return Finding(rule, "error", sentence, remedy, value, effect)


def warning(
    sentence: str, remedy: str = "", rule: str = "", value: float | None = None, effect: float | None = None
) -> Finding:
    """Return a warning, named likewise."""
    return Finding(rule, "warning", sentence, remedy, value, effect)


def info(
    sentence: str, remedy: str = "", rule: str = "", value: float | None = None, effect: float | None = None
) -> Finding:
    """Return a finding that is no fault, named likewise."""
    return Finding(rule, "info", sentence, remedy, value, effect)


def survived(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings on a host before a launch as that launch's records keep it: without errors.

    A full disk or an old fault of some device's memory spoils no number of a launch that ran all the same.
    """
    return tuple(
        replace(finding, severity="warning") if finding.severity == "error" else finding for finding in findings
    )
