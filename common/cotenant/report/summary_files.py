"""The summary for other programs: Markdown, CSV, JSON. An absent number is a dash, empty or null, never 0."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from cotenant.report.meters import device_load_percent
from cotenant.report.summary import Estimate, Job, Summary
from cotenant.report.summary_text import LEFT, cells, header_of
from cotenant.stats.interference import Ratio
from cotenant.text import printable

_COLUMNS = (
    *("suite", "host", "job", "group", "tenant", "unit", "rate", "low", "high", "launches", "observations", "spread"),
    *("fairness", "worst_over_best", "slowest", "overlap", "device_load_percent", "verdict", "errors", "warnings"),
    *("interference", "interference_low", "interference_high"),
    *("interference_launches", "interference_launches_alone"),
    *("tflops", "mfu", "ceiling_tflops", "of_ceiling"),
)


def as_markdown(summary: Summary) -> str:
    """Return one table of all jobs, findings counted."""
    header = ("suite", "host", *header_of(summary.jobs))
    left = LEFT | {"suite", "host"}
    rows = [header, tuple("---" if name in left else "---:" for name in header)]
    for job in summary.jobs:
        shown = {"suite": job.suite, "host": job.host, **cells(job)}
        rows.append(tuple(printable(shown[name]).replace("|", "\\|") for name in header))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def as_csv(summary: Summary) -> str:
    """Return a row per job and one per tenant of it; `tenant` is empty for the node. Numbers have all digits."""
    table = io.StringIO()
    writer = csv.DictWriter(table, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_flat(summary))
    return table.getvalue()


def as_json(summary: Summary) -> str:
    """Return everything the report says; rates are items per second."""
    content = {
        "schema": "cotenant-report-1",
        "jobs": [_job(job) for job in summary.jobs],
        "findings": [asdict(one) for one in summary.findings],
        "failures": [asdict(one) for one in summary.losses],
        "notes": list(summary.notes),
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _flat(summary: Summary) -> Iterator[dict[str, Any]]:
    for job in summary.jobs:
        even, lost = job.evenness, job.interference
        yield (
            _named(job)
            | _numbers(job.node)
            | _interference(None if lost is None else lost.node)
            | _compute(job)
            | {
                "fairness": even and even.jain,
                "worst_over_best": even and even.worst_over_best,
                "slowest": even and printable(even.slowest or ""),
                "overlap": job.overlap,
                "device_load_percent": device_load_percent(job.members),
                "errors": job.findings.get("error", 0),
                "warnings": job.findings.get("warning", 0),
            }
        )
        for tenant, found in job.tenants.items():
            of_tenant = _interference(None if lost is None else lost.tenants.get(tenant))
            yield _named(job) | _numbers(found) | of_tenant | {"tenant": printable(tenant)}


def _named(job: Job) -> dict[str, Any]:
    names = {
        "suite": job.suite,
        "host": job.host,
        "job": job.label,
        "group": job.group,
        "unit": job.unit,
        "verdict": job.verdict,
    }
    return {column: printable(name) for column, name in names.items()}


def _numbers(found: Estimate | None) -> dict[str, Any]:
    if found is None:
        return {}
    low, high = found.interval or (None, None)
    counts = {"launches": found.launches, "observations": found.observations}
    return {"rate": found.rate, "low": low, "high": high, "spread": found.spread} | counts


def _interference(found: Ratio | None) -> dict[str, Any]:
    """1 - rate together / rate alone, with the launches of each; of a paired ratio they are the same uids."""
    if found is None:
        return {}
    # Its low end is where most is kept.
    high, low = [1 - end for end in found.interval] if found.interval else (None, None)
    return {
        "interference": found.interference,
        "interference_low": low,
        "interference_high": high,
        "interference_launches": found.n[0],
        "interference_launches_alone": found.n[1],
    }


def _compute(job: Job) -> dict[str, Any]:
    """What it did, without the sentence that stands among the notes."""
    found = {} if job.compute is None else asdict(job.compute)
    return {name: value for name, value in found.items() if name != "above"}


def _job(job: Job) -> dict[str, Any]:
    return _named(job) | {
        "launches": job.launches,
        "overlap": job.overlap,
        "device_load_percent": device_load_percent(job.members),
        "node": None if job.node is None else asdict(job.node),
        "tenants": {name: asdict(found) for name, found in job.tenants.items()},
        "evenness": None if job.evenness is None else asdict(job.evenness),
        "interference": None if job.interference is None else asdict(job.interference),
        "compute": _compute(job) or None,
        "work": None if job.work is None else dict(job.work),
        "findings": dict(job.findings),
    }
