"""The finding: a sentence on a number's validity, and how to mend it."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from cotenant.text import printable

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`rule` names the check; an `error` makes a completed launch INVALID; `remedy` may be empty."""

    rule: str
    """Name of the check."""
    severity: Severity
    """An `error` makes a completed launch INVALID."""
    sentence: str
    """The finding in one sentence."""
    remedy: str = ""
    """How to mend it; may be empty."""
    value: float | None = None
    """The measured quantity that the rule judged, in the unit of its sentence; null if it judged none."""
    effect: float | None = None
    """The most that it can have moved the rate, relative to the rate; null if that is unknown."""


def _finding(
    severity: Severity,
    sentence: str,
    remedy: str = "",
    rule: str = "",
    value: float | None = None,
    effect: float | None = None,
) -> Finding:
    return Finding(rule, severity, sentence, remedy, value, effect)


error = functools.partial(_finding, "error")
"""Returns an error; if `rule` is empty, it gets the name of the rule or check that makes it."""
warning = functools.partial(_finding, "warning")
"""Returns a warning, named likewise."""
info = functools.partial(_finding, "info")
"""Returns a finding that is no fault, named likewise."""


BY_BENCHMARK = "benchmark:"
"""Begins the names of a benchmark's findings on itself; no rule of ours begins so."""
MOST_BY_BENCHMARK = 50
_MOST_CHARACTERS = 500


def by_benchmark(findings: Iterable[Finding]) -> list[Finding]:
    """Return a benchmark's findings on itself, labelled as its own, since any program may state them.

    At most the first MOST_BY_BENCHMARK are kept.
    """
    return [
        replace(
            finding,
            rule=BY_BENCHMARK + (re.sub(r"[^a-z0-9_]", "", finding.rule.lower())[:60] or "unnamed"),
            sentence=f"The benchmark says: {_short(finding.sentence)}",
            remedy=f"Its advice: {_short(finding.remedy)}" if finding.remedy else "",
        )
        for finding in itertools.islice(findings, MOST_BY_BENCHMARK)
    ]


def _short(text: str) -> str:
    line = printable(text)
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}..."


def survived(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings on a host before a launch that the launch's records keep: all that are no errors.

    A full disk, or an old fault in a device's memory, does not spoil the numbers of a launch that ran in spite of it.
    """
    return tuple(
        replace(finding, severity="warning") if finding.severity == "error" else finding for finding in findings
    )
