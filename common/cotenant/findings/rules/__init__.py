"""The rules that records are asked by when their launch has ended. They speak in the order of these files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from cotenant.finding import Finding
from cotenant.findings import LAUNCH_RULES, RECORD_RULES, named

from cotenant.findings.rules import timing, work, input, host, devices, launches  # noqa: A004, F401  # isort: skip
from cotenant.results.identity import with_efficiency
from cotenant.results.record import Record


def findings_of(record: Record) -> list[Finding]:
    """Return the findings of all rules about one record."""
    return [named(finding, name) for name, rule in RECORD_RULES.items() if (finding := rule(record)) is not None]


def with_findings(launch: Sequence[Record], earlier: Sequence[Record] = ()) -> list[Record]:
    """Return the records of one launch with what they are worth beside one device, and with the findings of all rules.

    `earlier`: the records of the launches before it in the same run of the suite.
    """
    measured = [with_efficiency(record, earlier) for record in launch]
    records = [_with(record, findings_of(record)) for record in measured]
    by_rule = [(name, rule(records, earlier)) for name, rule in LAUNCH_RULES.items()]
    return [
        _with(record, [named(findings[place], name) for name, findings in by_rule if place in findings])
        for place, record in enumerate(records)
    ]


def _with(record: Record, findings: Iterable[Finding]) -> Record:
    added = [*record.findings, *findings]
    return msgspec.structs.replace(record, findings=added) if len(added) > len(record.findings) else record
