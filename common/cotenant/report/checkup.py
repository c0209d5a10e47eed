"""The answers of `doctor`, by group: every check with its result and, below, its remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

from cotenant.findings import Answer, Check
from cotenant.report.view import STYLES, Cell, Column, Row, RowGroup, View, Words

FINE = "ok"
FIELDS = {
    "group": "the part of the host that is asked about",
    "check": "the name of the check",
    "severity": "error, warning or info: the worst among its findings; null without any",
    "answer": "the facts that it saw",
}
FINDING_FIELDS = {
    "check": "the check that found it",
    "rule": "the name of the finding",
    "severity": "error, warning or info",
    "sentence": "the finding in one sentence",
    "remedy": "how to mend it; may be empty",
    "value": "the measured quantity, in the unit of the sentence",
    "effect": "how much it can move a rate at the most",
}


def _severity(_: str, severity: str | None) -> Cell:
    return Cell(severity or FINE, style=STYLES.get(severity or FINE, "green"))


COLUMNS = (
    Column("", ("check", "severity"), _severity, left=True),
    Column("", "check", left=True),
    Column("", "answer", left=True),
)


def checkup_view(answers: Sequence[tuple[Check, Answer]]) -> View:
    """Return a row per check, its findings below it, and the number of each kind; `answers` are ordered by group."""
    rows = [
        {"group": check.group, "check": check.name, "severity": answer.severity, "answer": answer.text}
        for check, answer in answers
    ]
    found = [{"check": check.name, **asdict(finding)} for check, answer in answers for finding in answer.findings]

    def remedies(row: Row) -> list[Words]:
        findings = [finding for finding in found if finding["check"] == row["check"]]
        return [((f"{finding['sentence']} {finding['remedy']}".strip(), "dim"),) for finding in findings]

    severities = [answer.severity or FINE for _, answer in answers]
    counts = (f"{severities.count(word)} {word}" for word in (FINE, "info", "warning", "error") if word in severities)
    return View(
        "doctor",
        FIELDS,
        rows,
        COLUMNS,
        [RowGroup([*members], group) for group, members in groupby(rows, key=lambda row: str(row["group"]))],
        lines=[((f"{len(severities)} checks: {', '.join(counts)}", ""),)],
        below=remedies,
        joined=True,
        parts=[View("findings", FINDING_FIELDS, found)],
    )
