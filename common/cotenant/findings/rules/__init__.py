"""The rules that are applied to records when their launch has ended. Findings are in the order of these files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from cotenant.finding import Finding
from cotenant.findings import LaunchRule, RecordRule, declared_in, named
from cotenant.findings.rules import blocks, devices, host, launches, timing, work
from cotenant.findings.rules import input as input_
from cotenant.results.identity import with_efficiency
from cotenant.results.record import Record

_FILES = (timing, blocks, work, input_, host, devices, launches)
RECORD_RULES = {rule.name: rule for rule in declared_in(RecordRule, _FILES)}
"""The rules for one record, by the name of the finding that they make."""
MOST_EFFECT = 0.02
"""A record is not suspect if the cause of a warning can have moved its rate by no more than this share."""
LAUNCH_RULES = {rule.name: rule for rule in declared_in(LaunchRule, _FILES)}


def findings_of(record: Record) -> list[Finding]:
    """Return the findings of all rules about one record."""
    found = [named(finding, name) for name, rule in RECORD_RULES.items() if (finding := rule.ask(record))]
    return [_weighed(finding, record) for finding in found]


def _weighed(finding: Finding, record: Record) -> Finding:
    """Return a warning as a note if it cannot have moved the rate by more than 2 % or half the rate's interval.

    The larger of the two counts.

    A warning with an unknown effect stays one. The load of the host before the suite is a note if this launch has
    metered its own.
    """
    effect = 0.0 if finding.rule == "busy_host" and host.unnoticed(record) is not None else finding.effect
    if finding.severity != "warning" or effect is None or effect > max(MOST_EFFECT, _half_share(record)):
        return finding
    return replace(finding, severity="info")


def _half_share(record: Record) -> float:
    """Return half the interval of a record's rate over the rate; 0 if it has none."""
    if record.statistics is None or record.statistics.interval is None:
        return 0.0
    low, high = record.statistics.interval
    return (high - low) / 2 / record.statistics.median


def with_findings(launch: Sequence[Record], earlier: Sequence[Record] = ()) -> list[Record]:
    """Return the records of one launch with their scaling beside one device, and with the findings of all rules.

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
    """Apply a rule to the tenants of each cell, as others are not to be compared; return findings by place."""
    cells: dict[str, list[int]] = {}
    for place, record in enumerate(launch):
        cells.setdefault(record.name, []).append(place)
    return {
        places[place]: finding
        for places in cells.values()
        for place, finding in rule.ask([launch[place] for place in places], earlier).items()
    }


def _with(record: Record, findings: Iterable[Finding]) -> Record:
    found = [_weighed(finding, record) for finding in (*record.findings, *findings)]
    return record if found == record.findings else msgspec.structs.replace(record, findings=found)
