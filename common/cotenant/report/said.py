"""What records say besides their rates: findings with their remedies, and tenants that did not finish."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from cotenant.finding import Severity
from cotenant.results.detail import Detail
from cotenant.results.record import portable
from cotenant.results.row import Row
from cotenant.results.table import Details

ABORTED = "aborted"
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
_NUMBERS = re.compile(r"\d[\d.,]*")


@dataclass(frozen=True, slots=True)
class Said:
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


def tenant_of(row: Row) -> str:
    """Return how a tenant is called: by its number, in the original's records by its device."""
    return str(portable(row.vcd)) if row.tenant is None else str(row.tenant)


def said(details: Details) -> list[Said]:
    """Return the findings, the worst first; sentences that differ in their numbers only are one."""
    places: dict[tuple[Severity, str, str, str], Counter[str]] = defaultdict(Counter)
    sentences: dict[tuple[Severity, str, str, str], dict[str, None]] = defaultdict(dict)
    for one, job, count in details.findings():
        key = (one.severity, one.rule, _NUMBERS.sub("#", one.sentence), one.remedy)
        places[key][job] += count
        sentences[key][one.sentence] = None
    found = [
        Said(
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
    return sorted(found, key=lambda one: SEVERITIES.index(one.severity))


def losses(details: Iterable[Detail]) -> list[Loss]:
    """Return the tenants that did not finish; those that another's fault ended are counted with its first."""
    launches: dict[tuple[str, str, str, str, int], list[Row]] = defaultdict(list)
    for one in details:
        row = one.row
        if not row.completed:
            launches[row.suite, row.hostname, row.name, row.isolation, row.run_id].append(row)
    found = []
    for rows in launches.values():
        culprits = [row for row in rows if row.outcome != ABORTED] or rows
        aborted = len(rows) - len(culprits)
        for row in culprits:
            found.append(Loss(row.name, row.run_id, tenant_of(row), row.outcome, row.message, aborted))
            aborted = 0
    return found
