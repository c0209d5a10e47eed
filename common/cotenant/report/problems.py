"""What records say besides their rates: findings with their remedies, and tenants that did not finish."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace

import polars as pl

from cotenant.finding import Severity
from cotenant.results.columns import TENANT
from cotenant.results.launches import ABORTED
from cotenant.results.table import Rows

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
_NUMBERS = re.compile(r"\d[\d.,]*")


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """A finding of `count` records, its numbers aside; `sentence` is the first of them."""

    severity: Severity
    rule: str
    sentence: str
    remedy: str
    count: int
    alike: bool
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Loss:
    """A tenant that did not finish, and why; `aborted` others of its launch were ended by its fault."""

    job: str
    run_id: int
    tenant: str
    outcome: str
    message: str
    aborted: int = 0


def reported_findings(records: Rows) -> list[ReportedFinding]:
    """Return the findings, the worst first; sentences that differ in their numbers only are one."""
    places: dict[tuple[Severity, str, str, str], Counter[str]] = defaultdict(Counter)
    sentences: dict[tuple[Severity, str, str, str], dict[str, None]] = defaultdict(dict)
    counted = records.findings().group_by("severity", "rule", "sentence", "remedy", "name", maintain_order=True).len()
    for severity, rule, sentence, remedy, job, count in counted.iter_rows():
        key = (severity, rule, _NUMBERS.sub("#", sentence), remedy)
        places[key][job] += count
        sentences[key][sentence] = None
    findings = [
        ReportedFinding(
            severity,
            rule,
            next(iter(sentences[key])),
            remedy,
            jobs.total(),
            len(sentences[key]) == 1,
            tuple(jobs),
        )
        for key, jobs in places.items()
        for severity, rule, _, remedy in (key,)
    ]
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def losses(records: Rows) -> list[Loss]:
    """Return the tenants that did not finish; those that another's fault ended are counted with its first."""
    launches: dict[tuple[str, ...], list[Loss]] = defaultdict(list)
    lost = records.where(~pl.col("completed"))
    columns = lost.columns("name", "run_id", TENANT, "outcome", "message", "suite", "hostname", "isolation")
    for name, run_id, tenant, outcome, message, *place in columns.iter_rows():
        launches[name, str(run_id), *place].append(Loss(name, run_id, tenant, outcome, message))
    causes = []
    for of_launch in launches.values():
        culprits = [loss for loss in of_launch if loss.outcome != ABORTED] or of_launch
        aborted = len(of_launch) - len(culprits)
        causes += [replace(culprits[0], aborted=aborted), *culprits[1:]]
    return causes
