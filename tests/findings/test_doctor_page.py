"""docs/doctor.md explains every check and every finding, and none that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

from findings_page import made_in

from cotenant.findings.checks import CHECKS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/doctor.md").read_text()
PACKAGE = ROOT / "common/cotenant"
OF_RULES = {"swapped", "stolen", "throttled", "memory_kills", "not_enforced"}
SOURCES = (
    *PACKAGE.glob("findings/checks/*.py"),
    *(PACKAGE / name for name in ("commands/doctor.py", "launch/needs.py", "isolation/choose.py")),
    *PACKAGE.glob("isolation/plan*.py"),
)


def test_every_check_is_on_the_page_with_the_mark_of_the_suites_own() -> None:
    rows = re.findall(r"^\| ([\w/ -]+?)( \*)? \| [^|]+ \| [^|]+ \|$", PAGE, re.MULTILINE)
    found = {name: bool(mark) for name, mark in rows if name not in ("check", "finding", "---")}
    assert found == {check.name: check.every_suite for check in CHECKS}


def test_every_finding_is_on_the_page_and_no_other() -> None:
    made = {entry.rule for path in SOURCES for entry in made_in(path.read_text())} | OF_RULES
    written = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", PAGE)) - {"warning", "info", "error", "doctor"}
    assert made <= written
    assert written - made == {"runner_share"}
