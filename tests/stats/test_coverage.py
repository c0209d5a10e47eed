"""A small form of the table in docs/method-details.md: intervals cover the true value, verdicts are seldom false."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_table", ROOT / "scripts/coverage.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


COVERAGE = script()


@pytest.mark.parametrize(
    "case",
    [case for case in COVERAGE.CASES if not case.promised.startswith("nothing")],
    ids=lambda case: case.happens.__name__,
)
@pytest.mark.parametrize(
    ("draws", "covered", "false"), [(60, 0.85, 0.1), pytest.param(1000, 0.925, 0.075, marks=pytest.mark.slow)]
)
def test_it_holds(case: object, draws: int, covered: float, false: float) -> None:
    """The fast form has few draws at one noise, the slow one many at every noise and correlation of the table."""
    lags = COVERAGE.CORRELATIONS if case.correlated else (0.0,)
    noises = [(s, r) for s in COVERAGE.NOISES for r in lags] if draws > 60 else [(0.03, lags[-1])]
    for s, r in noises:
        happens = COVERAGE.share(case, s, r, draws)
        assert happens >= covered if case.promised.startswith("covers") else happens <= false, (s, r)


def test_the_page_has_the_table_of_all_cases() -> None:
    page = (ROOT / "docs/method-details.md").read_text()
    made = page.partition(COVERAGE.BEGIN)[2].partition(COVERAGE.END)[0]
    assert made.count("\n| ") == len(COVERAGE.CASES) + 1
    assert all(f"| {case.printed} | {case.promised} |" in made for case in COVERAGE.CASES)
