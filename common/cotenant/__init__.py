"""Cotenant measures the share of its rate alone that each user keeps when several train on one machine at once."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cotenant.api.comparing import compare as compare
    from cotenant.api.loading import load as load
    from cotenant.api.planning import MachinePlan as MachinePlan
    from cotenant.api.planning import plan as plan
    from cotenant.api.result import JobResult as JobResult
    from cotenant.api.result import Result as Result
    from cotenant.api.result import TenantRate as TenantRate
    from cotenant.api.running import run as run
    from cotenant.api.tables import ResultTable as ResultTable
    from cotenant.errors import CotenantError as CotenantError
    from cotenant.errors import IsolationError as IsolationError
    from cotenant.exec.measure import Measured as Measured
    from cotenant.exec.measure import measure as measure
    from cotenant.finding import Finding as Finding
    from cotenant.isolation.slice import Slice as Slice
    from cotenant.report.comparison import JobComparison as JobComparison
    from cotenant.report.comparison import SuiteComparison as SuiteComparison
    from cotenant.report.problems import Loss as Loss
    from cotenant.report.problems import ReportedFinding as ReportedFinding
    from cotenant.stats.comparison import Comparison as Comparison
    from cotenant.stats.kept import Kept as Kept
    from cotenant.stats.verdict import Verdict as Verdict

_PLACES = {
    "run": "api.running",
    "load": "api.loading",
    "compare": "api.comparing",
    "plan": "api.planning",
    "measure": "exec.measure",
    "Result": "api.result",
    "JobResult": "api.result",
    "TenantRate": "api.result",
    "Kept": "stats.kept",
    "ReportedFinding": "report.problems",
    "Loss": "report.problems",
    "ResultTable": "api.tables",
    "SuiteComparison": "report.comparison",
    "JobComparison": "report.comparison",
    "Comparison": "stats.comparison",
    "Verdict": "stats.verdict",
    "MachinePlan": "api.planning",
    "Slice": "isolation.slice",
    "Finding": "finding",
    "Measured": "exec.measure",
    "CotenantError": "errors",
    "IsolationError": "errors",
}
"""The names that this package offers to programs, in the order of docs/api.md, and the module of each: imported when it
is first used."""


if not TYPE_CHECKING:  # to a type checker every name would be one of ours

    def __getattr__(name: str) -> Any:
        if name in _PLACES:
            return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
