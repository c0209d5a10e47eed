"""Findings are listed from the source, and so the list is never behind it; doctor's page explains every check."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from cotenant.finding import Finding, error, info, warning
from cotenant.findings import RecordRule, declared_in, record_rule
from cotenant.findings.checks import CHECKS
from cotenant.findings.listing import PACKAGE, ListedFinding, entries, made_in
from cotenant.findings.rules import LAUNCH_RULES, RECORD_RULES, findings_of
from results.made import a_record
from tenants.suites import ROOT

DOCS = ROOT / "docs"
OF_DOCTOR = (DOCS / "troubleshooting.md").read_text().partition("## The checks")[2]
OF_RULES = {"swapped", "stolen", "throttled", "memory_kills", "not_enforced"}
SOURCES = (
    *PACKAGE.glob("findings/checks/*.py"),
    *(PACKAGE / name for name in ("commands/doctor.py", "launch/needs.py", "isolation/choose.py")),
    *PACKAGE.glob("isolation/plan*.py"),
)


def test_every_rule_is_listed_with_severity_and_sentence() -> None:
    every = entries()
    assert {entry.rule for entry in every} > {*RECORD_RULES, *LAUNCH_RULES}
    for entry in every:
        assert entry.severities, entry
        assert set(entry.severities) <= {"error", "warning", "info"}, entry
        assert entry.sentence, entry
    assert {entry.rule for entry in entries("drift")} == {"drift"}
    order = [(entry.rule, entry.sentence) for entry in every]
    assert order == sorted(order)


NEW_RULE = '''
from __future__ import annotations
@record_rule
def odd_seed(record: Record) -> Finding | None:
    """A seed that nobody would choose."""
    severity = error if record.tenants > 2 else warning
    remedy = "Choose another." if record.tenants > 2 else "See why."
    return severity(f"{record.arguments['seed']} is odd.", remedy)


@record_rule
def elsewhere(record: Record) -> Finding | None:
    """What it is about."""
    return info(sentence_of(record))
'''


def test_a_new_rule_is_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function in its file is enough for the finding in a record and for its entry in the list."""
    file = ModuleType("cotenant.findings.rules.oddities")
    vars(file).update(record_rule=record_rule, error=error, warning=warning, info=info)
    exec(NEW_RULE, vars(file) | {"sentence_of": lambda record: "Said elsewhere."}, vars(file))
    for rule in declared_in(RecordRule, [file]):
        monkeypatch.setitem(RECORD_RULES, rule.name, rule)
    made = {finding.rule: finding for finding in findings_of(a_record())}
    assert made["odd_seed"] == Finding("odd_seed", "warning", "100 is odd.", "See why.")
    assert list(made_in(NEW_RULE)) == [
        ListedFinding("odd_seed", ("error", "warning"), "… is odd.", "Choose another. See why."),
        ListedFinding("elsewhere", ("info",), "What it is about.", ""),
    ]


def test_the_doctor_page_lists_and_marks_every_check() -> None:
    rows = re.findall(r"^\| ([\w/ -]+?)( \*)? \| [^|]+ \|$", OF_DOCTOR, re.MULTILINE)
    found = {name: bool(mark) for name, mark in rows if name not in ("check", "finding", "---")}
    assert found == {check.name: check.every_suite for check in CHECKS}


def test_every_finding_is_on_doctors_page_and_no_other() -> None:
    made = {entry.rule for path in SOURCES for entry in made_in(path.read_text())} | OF_RULES
    written = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", OF_DOCTOR)) - {"warning", "info", "error", "doctor"}
    assert made <= written
    assert written - made == {"runner_share"}
