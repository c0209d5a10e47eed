"""The jobs of a summary as a grid, and their tenants as another: what `report` prints, and a suite at its end."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

import polars as pl

from cotenant.errors import CotenantError
from cotenant.finding import Finding
from cotenant.report import numbers, scaling
from cotenant.report.grid import (
    Cell,
    Column,
    Grid,
    Row,
    RowGroup,
    Value,
    Words,
    measured,
    measured_columns,
    number,
    word,
)
from cotenant.report.interference import interference_grid, launches_words
from cotenant.report.meters import device_load_percent
from cotenant.report.mlbench import NOT_IN_PG
from cotenant.report.numbers import ABSENT, at_most, percent, rate
from cotenant.report.problems import finding_counts, lines_below
from cotenant.report.summary import PASSED, Estimate, JobSummary, Summary, summarise
from cotenant.results.launches import INVALID
from cotenant.results.record import Record
from cotenant.results.table import Rows, table_of_records
from cotenant.results.targets import Target
from cotenant.stats.interference import Ratio
from cotenant.text import printable

SHOWN_TENANTS = 4
RATE = measured_columns("rate", "rate")
SPREAD = Column("spread", "spread")
OVERLAP = Column("overlap", "overlap")
VERDICT = Column("verdict", "verdict", left=True)
JOBS = (
    Column("suite", "suite", left=True, seen="files"),
    Column("host", "host", left=True, seen="files"),
    Column("job", "job", left=True),
    *RATE,
    VERDICT,
    SPREAD,
    OVERLAP,
    Column("unit", "unit", left=True),
    Column("group", "group", left=True),
    Column("tenants", "tenants", left=True),
    Column("fairness", "fairness"),
    Column("worst/best", "worst/best"),
    Column("interference", "interference", optional=True),
    Column("device load", "device load", optional=True),
    Column("MFU", "MFU", optional=True),
    Column("of ceiling", "of ceiling", optional=True),
    Column("target", "/ target", optional=True),
    Column("findings", "findings", left=True),
)
TENANTS = (Column("tenant", "tenant"), *RATE, SPREAD, OVERLAP, VERDICT)
FIELDS = (
    *("suite", "host", "job", "group", "tenant", "unit", "rate", "low", "high", "launches", "observations", "spread"),
    *("fairness", "worst_over_best", "slowest", "overlap", "device_load_percent", "verdict", "errors", "warnings"),
    *("interference", "interference_low", "interference_high"),
    *("interference_launches", "interference_launches_alone"),
    *("tflops", "mfu", "ceiling_tflops", "of_ceiling"),
)
OF_N = (
    "n: L launches, with the 95 % t interval of their mean (3 and more) and the spread between them; o observations of "
    "a single launch's only tenant, with the interval of their median."
)
OF_WORST = "worst/best (the tenant that was slowest in most launches)."
OF_INTERFERENCE = (
    "interference: 1 - rate together / rate alone in the slice, with its 95 % interval and n launches; "
    "--table interference has it per tenant."
)
OF_CEILING = "of ceiling: FLOP/s over those of the matrix product that --jobs ceilings measured in the same slices."


def jobs_grid(summary: Summary, targets: Mapping[str, Target] | None = None) -> Grid:
    """Return a row per job, grouped by suite and host; `targets` are of one device.

    For programs there are also rows of the tenants, and a document with the findings, failures and notes.
    """
    groups = []
    for (suite, host), members in groupby(enumerate(summary.jobs), key=lambda pair: (pair[1].suite, pair[1].host)):
        rows, jobs = [], []
        for index, job in members:
            jobs.append(job)
            rows.append(_job_row(job, index, targets or {}))
            rows += [Row(values=_of_tenant(job, tenant)) for tenant in job.tenants]
        groups.append(RowGroup(rows, suite or "suite", facts(jobs, host)))
    notes: list[Words] = [((f"{OF_N} {OF_WORST}", "dim"),)] if summary.jobs else []
    if any(job.interference is not None for job in summary.jobs):
        notes.append(((OF_INTERFERENCE, "dim"),))
    if any(job.compute is not None and job.compute.of_ceiling is not None for job in summary.jobs):
        notes.append(((OF_CEILING, "dim"),))
    document = {
        "schema": "cotenant-report-1",
        "jobs": [_document(job) for job in summary.jobs],
        "findings": [asdict(finding) for finding in summary.findings],
        "failures": [asdict(loss) for loss in summary.losses],
        "notes": list(summary.notes),
    }
    return Grid(
        JOBS,
        groups,
        notes=[*notes, *lines_below(summary.losses, summary.notes, summary.findings)],
        fields=FIELDS,
        document=document,
    )


def facts(jobs: Sequence[JobSummary], host: str) -> str:
    """Return what holds for all jobs of a suite on one host: `node1: Some Processor; 2 tenants, isolation v1`."""
    works = [dict(job.work) for job in jobs if job.work is not None]
    gpus = ", ".join(sorted({gpu for job in jobs for gpu in job.gpus}))
    parts = {
        "isolation": sorted({work["isolation"] for work in works if work["isolation"]}),
        "torch": sorted({work["software"] for work in works if work["software"]}),
    }
    known = [f"{name} {', '.join(values)}" for name, values in parts.items() if values]
    return "; ".join([f"{host or 'an unnamed host'}{f': {gpus}' if gpus else ''}", *known])


def _job_row(job: JobSummary, index: int, targets: Mapping[str, Target]) -> Row:
    evenness, compute = job.evenness, job.compute
    lost = None if job.interference is None else job.interference.node
    slowest = f" ({evenness.slowest})" if evenness is not None and evenness.slowest is not None else ""
    cells = {
        "suite": word(job.suite, "suite"),
        "host": word(job.host, "host"),
        "job": Cell(job.label, {"job": job.label}, link=f"job{index}" if job.rates else ""),
        "group": word(job.group, "group"),
        "unit": Cell(f"{job.unit}/s" if job.unit else ABSENT, {"unit": job.unit}),
        **estimate_cells(job.node),
        "tenants": Cell(_rates(job)),
        "fairness": number(evenness.jain if evenness else None, "{:.4f}".format, "fairness"),
        "worst/best": number(
            evenness.worst_over_best if evenness else None, lambda ratio: f"{ratio:.3f}{slowest}", "worst_over_best"
        ),
        "overlap": number(job.overlap, at_most, "overlap"),
        "interference": Cell(ABSENT if lost is None else interference_words(lost), _interference(lost)),
        "device load": number(device_load_percent(job.members), "{:.0f} %".format, "device_load_percent"),
        "MFU": number(compute.mfu if compute else None, percent, "mfu"),
        "of ceiling": number(compute.of_ceiling if compute else None, percent, "of_ceiling"),
        "target": number(_share(job, targets), "{:.2f}".format),
        "verdict": word(job.verdict, "verdict", style_of(job.verdict)),
        "findings": Cell(finding_counts(job.findings)),
    }
    values: dict[str, Value] = {
        "slowest": evenness.slowest if evenness else None,
        "errors": job.findings.get("error", 0),
        "warnings": job.findings.get("warning", 0),
        "tflops": compute.tflops if compute else None,
        "ceiling_tflops": compute.ceiling_tflops if compute else None,
    }
    return Row(cells, values)


def _of_tenant(job: JobSummary, tenant: str) -> dict[str, Value]:
    lost = None if job.interference is None else job.interference.tenants.get(tenant)
    cells = Row(estimate_cells(job.tenants[tenant]), _interference(lost))
    return _named(job) | {"tenant": tenant} | cells.record


def _named(job: JobSummary) -> dict[str, Value]:
    return {
        "suite": job.suite,
        "host": job.host,
        "job": job.label,
        "group": job.group,
        "unit": job.unit,
        "verdict": job.verdict,
    }


def estimate_cells(estimate: Estimate | None) -> dict[str, Cell]:
    """Return the cells of rate, interval, n and spread."""
    if estimate is None:
        return measured("rate", None, None, "", {}) | {"spread": Cell()}
    counts = {"launches": estimate.launches, "observations": estimate.observations}
    n = f"{estimate.launches}L" if estimate.observations is None else f"{estimate.observations}o"
    cells = measured("rate", estimate.rate, estimate.interval, n, counts, ends=("low", "high"))
    return cells | {"spread": number(estimate.spread, percent, "spread")}


def interference_words(ratio: Ratio) -> str:
    """Return `4.6 % (3.9..5.2 %, n 5)`: what neighbours cost, its interval, and of how many launches."""
    lost, n = percent(ratio.interference), launches_words(ratio)
    if ratio.interval is None:
        return f"{lost} ({numbers.TOO_SMALL}: {n})"
    # Its low end is where most is kept.
    high, low = (1 - end for end in ratio.interval)
    return f"{lost} ({100 * low:.1f}..{percent(high)}, n {n})"


def _interference(ratio: Ratio | None) -> dict[str, Value]:
    """1 - rate together / rate alone, with the launches of each; of a paired ratio they are the same uids."""
    if ratio is None:
        return {}
    # Its low end is where most is kept.
    high, low = [1 - end for end in ratio.interval] if ratio.interval else (None, None)
    return {
        "interference": ratio.interference,
        "interference_low": low,
        "interference_high": high,
        "interference_launches": ratio.n[0],
        "interference_launches_alone": ratio.n[1],
    }


def _share(job: JobSummary, targets: Mapping[str, Target]) -> float | None:
    """Return a tenant's mean rate over the target of one device."""
    if job.name not in targets or job.node is None or job.name in NOT_IN_PG:
        return None
    return job.node.rate / max(1, len(job.tenants)) / targets[job.name].rate


def style_of(verdict: str) -> str:
    """Return the colour of a verdict; one that only `completed` has no rate."""
    return "green" if verdict == PASSED else "yellow" if verdict.endswith((PASSED, "completed")) else "bold red"


def _rates(job: JobSummary) -> str:
    """Every tenant's rate; of many the slowest and the fastest."""
    rates = [estimate.rate for estimate in job.tenants.values()]
    if len(rates) < 2:
        return ABSENT
    if len(rates) > SHOWN_TENANTS:
        return f"{len(rates)}: {rate(min(rates))}..{rate(max(rates))}"
    return " ".join(map(rate, rates))


def _document(job: JobSummary) -> dict[str, Any]:
    compute = {} if job.compute is None else asdict(job.compute)
    # The sentence stands among the notes.
    compute.pop("above", None)
    named = {name: printable(str(value)) for name, value in _named(job).items()}
    return named | {
        "launches": job.launches,
        "overlap": job.overlap,
        "device_load_percent": device_load_percent(job.members),
        "node": None if job.node is None else asdict(job.node),
        "tenants": {name: asdict(estimate) for name, estimate in job.tenants.items()},
        "evenness": None if job.evenness is None else asdict(job.evenness),
        "interference": None if job.interference is None else asdict(job.interference),
        "compute": compute or None,
        "work": None if job.work is None else dict(job.work),
        "findings": dict(job.findings),
    }


# The tenants, at a suite's end


def tenants_grid(summary: Summary, printed: Collection[Finding] = (), verbose: bool = False) -> Grid:
    """Return a row per tenant, grouped by job, and one of all of them where there are several.

    What is to be known of them stands below, but for findings that have been `printed` before: see `lines_below`.
    """
    groups = [RowGroup(list(_tenant_rows(job, summary)), job.label, _job_facts(job)) for job in summary.jobs]
    problems = lines_below(summary.losses, summary.notes, summary.findings, printed, verbose)
    notes: list[Words] = [((OF_N, "dim"),), *problems]
    return Grid(TENANTS, groups, notes=notes, joined=True)


def _job_facts(job: JobSummary) -> str:
    """Return what belongs to all tenants of a job."""
    parts = [f"{job.unit}/s" if job.unit else "", f"isolation {job.isolation}" if job.isolation else ""]
    if (even := job.evenness) is not None:
        slowest = f" (tenant {even.slowest})" if even.slowest is not None else ""
        parts.append(f"fairness {even.jain:.4f}, worst/best {even.worst_over_best:.3f}{slowest}")
    if job.interference is not None and job.interference.node is not None:
        parts.append(f"interference {interference_words(job.interference.node)}")
    return "; ".join(filter(None, parts))


def _tenant_rows(job: JobSummary, summary: Summary) -> Iterator[Row]:
    """Yield the rows of a job; where no launch counts its tenants have no rate, and each its own outcome."""
    own = job.members
    if job.node is None:
        same = (pl.col("suite") == job.suite) & (pl.col("hostname") == job.host) & (pl.col("name") == job.name)
        own = summary.records.where(same)
    elif len(job.tenants) > 1:
        yield _tenant_row("all", job.node, job.overlap, job.verdict)
    records = own.columns("tenant", "vcd", "outcome", "invalid", "overlap")
    overlaps: dict[str, float | None] = {}
    verdicts: dict[str, str] = {}
    for index, vcd, outcome, invalid, overlap in records.iter_rows():
        tenant = str(vcd if index is None else index)
        overlaps[tenant] = min(filter(None, (overlap, overlaps.get(tenant))), default=overlap)
        verdicts[tenant] = INVALID if invalid else outcome
    for tenant in job.tenants or verdicts:
        verdict = verdicts[tenant] if job.node is None else job.verdict if len(job.tenants) == 1 else ""
        yield _tenant_row(tenant, job.tenants.get(tenant), overlaps[tenant], verdict)


def _tenant_row(tenant: str, estimate: Estimate | None, overlap: float | None, verdict: str) -> Row:
    cells = {"overlap": number(overlap, at_most), "verdict": word(verdict, style=style_of(verdict) if verdict else "")}
    return Row({"tenant": Cell(tenant)} | estimate_cells(estimate) | cells)


def suite_grids(records: Iterable[Record], printed: Collection[Finding] = (), verbose: bool = False) -> Iterator[Grid]:
    """Yield what stands at a suite's end: its tenants, and its scaling curves, as a report would say them."""
    summary = summarise(Rows.all(table_of_records(records)))
    yield tenants_grid(summary, printed, verbose)
    if (costs := interference_grid(summary)).groups:
        yield costs
    with contextlib.suppress(CotenantError):
        curves = {series: points for series, points in scaling.curves(summary.jobs).items() if len(points) > 1}
        if curves:
            yield scaling.scaling_grid(curves)
