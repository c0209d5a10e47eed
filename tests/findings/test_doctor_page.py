"""docs/doctor.md says of every check and every finding what it is, and of nothing that does not exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import cotenant.findings.checks  # noqa: F401
from cotenant.findings import CHECKS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/doctor.md").read_text()
PACKAGE = ROOT / "common/cotenant"
OF_RULES = {"swapped", "stolen", "throttled", "memory_kills", "not_enforced"}
SOURCES = (
    *PACKAGE.glob("findings/checks/*.py"),
    *(PACKAGE / name for name in ("commands/doctor.py", "launch/needs.py", "isolation/choose.py")),
    *PACKAGE.glob("isolation/plan*.py"),
)


def codes(path: Path) -> Iterator[str]:
    """Yield the rule of every finding that a file makes."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
            rule = node.args[0]
            assert isinstance(rule, ast.Constant), f"{path}: a finding's rule is written out"
            yield rule.value


def test_every_check_is_on_the_page_with_the_mark_of_the_suites_own() -> None:
    rows = re.findall(r"^\| ([\w/ -]+?)( \*)? \| [^|]+ \| [^|]+ \|$", PAGE, re.MULTILINE)
    found = {name: bool(mark) for name, mark in rows if name not in ("check", "finding", "---")}
    assert found == {check.name: check.every_suite for check in CHECKS}


def test_every_finding_is_on_the_page_and_no_other() -> None:
    made = {code for path in SOURCES for code in codes(path)} | OF_RULES
    written = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", PAGE)) - {"warning", "info", "error", "doctor"}
    assert made <= written
    assert written - made == {"runner_share"}
