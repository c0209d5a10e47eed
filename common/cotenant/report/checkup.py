"""The answers of `doctor`, by group: every check with what it found, and below it what is to be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

from cotenant.findings import Answer, Check
from cotenant.report.grid import STYLES, Cell, Column, Grid, Row, RowGroup, Words

FINE = "ok"
COLUMNS = tuple(Column(key, "", left=True) for key in ("severity", "check", "answer"))


def checkup_grid(answers: Sequence[tuple[Check, Answer]]) -> Grid:
    """Return a row per check, its findings below it, and how many are of which kind; they come ordered by group."""
    groups = [
        RowGroup([_row(check, answer) for check, answer in members], group)
        for group, members in groupby(answers, key=lambda pair: pair[0].group)
    ]
    severities = [answer.severity or FINE for _, answer in answers]
    counts = (f"{severities.count(word)} {word}" for word in (FINE, "info", "warning", "error") if word in severities)
    document = [
        {
            "group": check.group,
            "check": check.name,
            "severity": answer.severity,
            "answer": answer.text,
            "findings": [asdict(finding) for finding in answer.findings],
        }
        for check, answer in answers
    ]
    total: Words = ((f"{len(severities)} checks: {', '.join(counts)}", ""),)
    return Grid(COLUMNS, groups, notes=[total], joined=True, document=document)


def _row(check: Check, answer: Answer) -> Row:
    severity = answer.severity or FINE
    cells = {
        "severity": Cell(severity, style=STYLES.get(severity, "green")),
        "check": Cell(check.name),
        "answer": Cell(answer.text),
    }
    notes: list[Words] = [((f"{found.sentence} {found.remedy}".strip(), "dim"),) for found in answer.findings]
    return Row(cells, notes=notes)
