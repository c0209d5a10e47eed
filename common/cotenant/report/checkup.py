"""The answers of `doctor`, by group: every check with its result, and below it the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from cotenant.findings import Answer, Check
from cotenant.report.grid import STYLES, Cell, Column, Grid, RowGroup, Words, row, text_column

FINE = "ok"
COLUMNS: Sequence[Column[tuple[Check, Answer]]] = (
    Column("", lambda pair: _severity(pair[1].severity or FINE), left=True),
    text_column("", lambda pair: pair[0].name),
    text_column("", lambda pair: pair[1].text),
)


def checkup_grid(answers: Sequence[tuple[Check, Answer]]) -> Grid:
    """Return a row per check, its findings below it, and the number of each kind; `answers` are ordered by group."""
    groups = [
        RowGroup([row(COLUMNS, pair, _remedies(pair[1])) for pair in members], group)
        for group, members in groupby(answers, key=lambda pair: pair[0].group)
    ]
    severities = [answer.severity or FINE for _, answer in answers]
    counts = (f"{severities.count(word)} {word}" for word in (FINE, "info", "warning", "error") if word in severities)
    checks = [
        {
            "group": check.group,
            "check": check.name,
            "severity": answer.severity,
            "answer": answer.text,
            "findings": answer.findings,
        }
        for check, answer in answers
    ]
    total: Words = ((f"{len(severities)} checks: {', '.join(counts)}", ""),)
    return Grid(COLUMNS, groups, notes=[total], joined=True, document={"schema": "cotenant-doctor-1", "checks": checks})


def _severity(severity: str) -> Cell:
    return Cell(severity, style=STYLES.get(severity, "green"))


def _remedies(answer: Answer) -> list[Words]:
    return [((f"{finding.sentence} {finding.remedy}".strip(), "dim"),) for finding in answer.findings]
