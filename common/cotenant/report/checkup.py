"""The answers of `doctor`, by group: every check with its result, and below it the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

from cotenant.findings import Answer, Check
from cotenant.report.grid import STYLES, Cell, Column, Grid, RowGroup, Words, row

FINE = "ok"
COLUMNS: Sequence[Column[tuple[Check, Answer]]] = (
    Column("", lambda pair: Cell(_severity(pair[1]), style=STYLES.get(_severity(pair[1]), "green")), left=True),
    Column("", lambda pair: Cell(pair[0].name), left=True),
    Column("", lambda pair: Cell(pair[1].text), left=True),
)


def checkup_grid(answers: Sequence[tuple[Check, Answer]]) -> Grid:
    """Return a row per check, its findings below it, and the number of each kind; `answers` are ordered by group."""
    groups = [
        RowGroup([row(COLUMNS, pair, _remedies(pair[1])) for pair in members], group)
        for group, members in groupby(answers, key=lambda pair: pair[0].group)
    ]
    severities = [_severity(answer) for _, answer in answers]
    counts = (f"{severities.count(word)} {word}" for word in (FINE, "info", "warning", "error") if word in severities)
    checks = [
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
    return Grid(COLUMNS, groups, notes=[total], joined=True, document={"schema": "cotenant-doctor-1", "checks": checks})


def _severity(answer: Answer) -> str:
    return answer.severity or FINE


def _remedies(answer: Answer) -> list[Words]:
    return [((f"{finding.sentence} {finding.remedy}".strip(), "dim"),) for finding in answer.findings]
