"""A small form of the table in docs/method.md: intervals cover their truth, verdicts are seldom false."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_table", ROOT / "scripts/coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


COVERAGE = script()


@pytest.mark.parametrize("case", COVERAGE.CASES, ids=lambda case: case.happens.__name__)
def test_it_holds_in_a_few_draws(case: object) -> None:
    happens = COVERAGE.share(case, 0.03, 0.3 if case.correlated else 0.0, 60)
    assert happens >= 0.85 if case.promised.startswith("covers") else happens <= 0.1


def test_the_page_has_the_table_of_all_cases() -> None:
    page = (ROOT / "docs/method.md").read_text()
    made = page.partition(COVERAGE.BEGIN)[2].partition(COVERAGE.END)[0]
    assert made.count("\n| ") == len(COVERAGE.CASES) + 1
    assert all(f"| {case.printed} | {case.promised} |" in made for case in COVERAGE.CASES)
