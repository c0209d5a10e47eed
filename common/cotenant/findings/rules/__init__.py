"""The rules that records are asked by when their launch has ended. They speak in the order of these files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from cotenant.finding import Finding
from cotenant.findings import LaunchRule, RecordRule, declared, named
from cotenant.findings.rules import blocks, devices, host, launches, timing, work
from cotenant.findings.rules import input as input_
from cotenant.results.identity import with_efficiency
from cotenant.results.record import Record

_FILES = (timing, blocks, work, input_, host, devices, launches)
RECORD_RULES = {rule.name: rule for rule in declared(RecordRule, _FILES)}
"""By the name of the finding that they make."""
LAUNCH_RULES = {rule.name: rule for rule in declared(LaunchRule, _FILES)}


def findings_of(record: Record) -> list[Finding]:
    """Return the findings of all rules about one record."""
    return [named(finding, name) for name, rule in RECORD_RULES.items() if (finding := rule.ask(record))]


def with_findings(launch: Sequence[Record], earlier: Sequence[Record] = ()) -> list[Record]:
    """Return the records of one launch with what they are worth beside one device, and with the findings of all rules.

    `earlier`: the records of the launches before it in the same run of the suite.
    """
    measured = [with_efficiency(record, earlier) for record in launch]
    records = [_with(record, findings_of(record)) for record in measured]
    by_rule = [(name, _within_cells(rule, records, earlier)) for name, rule in LAUNCH_RULES.items()]
    return [
        _with(record, [named(findings[place], name) for name, findings in by_rule if place in findings])
        for place, record in enumerate(records)
    ]


def _within_cells(rule: LaunchRule, launch: Sequence[Record], earlier: Sequence[Record]) -> dict[int, Finding]:
    """Ask a rule of the tenants that ran one cell, which are all but in a mix: others are not to be compared."""
    cells: dict[str, list[int]] = {}
    for place, record in enumerate(launch):
        cells.setdefault(record.name, []).append(place)
    return {
        places[place]: finding
        for places in cells.values()
        for place, finding in rule.ask([launch[place] for place in places], earlier).items()
    }


def _with(record: Record, findings: Iterable[Finding]) -> Record:
    added = [*record.findings, *findings]
    return msgspec.structs.replace(record, findings=added) if len(added) > len(record.findings) else record
