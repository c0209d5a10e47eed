"""The jobs of a summary as a grid, and their tenants as another: what `report` prints, and a suite at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import polars as pl

from cotenant.report import numbers
from cotenant.report.answer import answer
from cotenant.report.grid import (
    Cell,
    Column,
    Grid,
    Measurement,
    Row,
    RowGroup,
    T,
    Value,
    Words,
    measured_columns,
    number,
    row,
    word,
)
from cotenant.report.interference import launches_words
from cotenant.report.meters import device_load_percent
from cotenant.report.mlbench import NOT_IN_PG
from cotenant.report.numbers import ABSENT, SHOWN_TENANTS, at_most, percent
from cotenant.report.problems import finding_counts, lines_below, rule_anchors
from cotenant.report.summary import Estimate, JobSummary, Summary
from cotenant.results.columns import TENANT
from cotenant.results.launches import grouped
from cotenant.results.record import CLEAN, SUSPECT
from cotenant.results.targets import Target
from cotenant.text import printable

INTERFERENCE = [f"interference{part}" for part in ("", "_low", "_high", "_launches", "_launches_alone", "_quick")]
STEPS = ("steps", "step_p50_ns", "step_p99_ns", "step_p99_low_ns", "step_p99_high_ns")
FIELDS = (
    *("suite", "host", "job", "group", "tenant", "unit", "sharers"),
    *("rate", "low", "high", "launches", "observations", "spread"),
    *("fairness", "worst_over_best", "slowest", "overlap", "device_load_percent"),
    *("verdict", "worst_warning", "errors", "warnings"),
    *INTERFERENCE,
    *("tflops", "mfu", "ceiling_tflops", "of_ceiling"),
    *STEPS,
)
OF_WORKS = {"isolation": "isolation", "torch": "software"}
OF_N = (
    "rate: the median over a tenant's observations, the geometric mean over launches; of all tenants their sum. n: L "
    "launches, with the 95 % t interval of their mean (3 and more) and the spread between them; o observations of a "
    "single launch's only tenant, with the interval of their median."
)
WITHIN = "within a launch"
OF_WITHIN = (
    "within a launch: half the 95 % interval of the median of a launch's observations, per tenant (of several launches "
    "the widest); another launch may lie outside of it."
)
OF_WORST = "worst/best (the tenant that was slowest in most launches)."
OF_INTERFERENCE = (
    "interference: 1 - rate together / rate alone in the slice, with its 95 % interval and n launches; "
    "--table interference has it per tenant."
)
OF_STEPS = (
    "p50, p99 of a step: of the tenant and launch whose p99 is the slowest, with p99's exact 95 % interval over its n "
    "steps, taken as independent."
)
OF_CEILING = "of ceiling: FLOP/s over those of the matrix product that --jobs ceilings measured in the same slices."


def jobs_grid(summary: Summary, targets: Mapping[str, Target] | None = None) -> Grid:
    """Return a row per job, grouped by suite and host; `targets` are of one device.

    For programs there are also rows of the tenants, and a document with the findings, failures and notes.
    """
    anchors = rule_anchors(summary.findings)
    columns, groups = _columns(summary, targets or {}, anchors), []
    for (suite, host), jobs in grouped(summary.jobs, lambda job: (job.suite, job.host)).items():
        rows = [each for job in jobs for each in (row(columns, job), *_tenant_records(job))]
        groups.append(RowGroup(rows, suite or "suite", facts(jobs, host)))
    notes: list[Words] = [((text, "dim"),) for text in explanations(summary)]
    document = {
        "schema": "cotenant-report-1",
        "jobs": [_document(job) for job in summary.jobs],
        "findings": [asdict(finding) for finding in summary.findings],
        "failures": [asdict(loss) for loss in summary.losses],
        "notes": list(summary.notes),
    }
    notes += lines_below(summary.losses, summary.notes, summary.findings)
    if sentence := answer(summary):
        notes.append(((sentence, "bold"),))
    return Grid(columns, groups, notes=notes, fields=FIELDS, document=document)


def explanations(summary: Summary) -> list[str]:
    """Return what the columns of its grid mean, of those that have anything in them."""
    shown = {
        f"{OF_N} {OF_WORST}": bool(summary.jobs),
        OF_WITHIN: any(_within(job) != Cell() for job in summary.jobs),
        OF_INTERFERENCE: any(job.over_alone(tenant) for job in summary.jobs for tenant in job.tenants),
        OF_STEPS: any(_steps(job) != Cell() for job in summary.jobs),
        OF_CEILING: any(job.compute is not None and job.compute.of_ceiling is not None for job in summary.jobs),
    }
    return [text for text, needed in shown.items() if needed]


def _columns(
    summary: Summary, targets: Mapping[str, Target], anchors: Mapping[str, str]
) -> Sequence[Column[JobSummary]]:
    links = {job: f"job{index}" if job.rates else "" for index, job in enumerate(summary.jobs)}
    of_node: Sequence[Column[JobSummary]] = rate_columns(lambda job: job.node)
    rate, interval, n, spread = of_node
    return (
        Column("suite", lambda job: word(job.suite), left=True, seen="files"),
        Column("host", lambda job: word(job.host), left=True, seen="files"),
        Column("job", lambda job: Cell(job.label, _named(job) | _computed(job), link=links[job]), left=True),
        Column("each tenant", lambda job: Cell(tenant_rates(job)), left=True),
        Column("unit", lambda job: Cell(f"{job.unit}/s" if job.unit else ABSENT), left=True),
        Column("shared by", lambda job: word(str(job.sharers)) if shared(job) else Cell(), optional=True),
        Column("bound", lambda job: word(bound(job)) if bound(job) else Cell(), left=True, optional=True),
        Column("verdict", lambda job: replace(_verdict(job), note_link=anchors.get(worst_rule(job), "")), left=True),
        replace(rate, heading="all tenants"),
        interval,
        n,
        replace(spread, optional=True),
        Column(WITHIN, _within, left=True, optional=True),
        Column("worst/best", _worst_over_best, optional=True),
        Column("overlap", lambda job: number(job.overlap, at_most, "overlap"), optional=True),
        Column(
            "fairness",
            lambda job: number(job.evenness.jain if job.evenness else None, "{:.4f}".format, "fairness"),
            optional=True,
        ),
        Column("group", lambda job: word(job.group), left=True),
        Column("interference", interference_cell, optional=True),
        Column("p50, p99 of a step", _steps, optional=True),
        Column("device load", _device_load, optional=True),
        Column("MFU", lambda job: number(_computed(job).get("mfu"), percent), optional=True),
        Column("of ceiling", lambda job: number(_computed(job).get("of_ceiling"), percent), optional=True),
        Column("/ target", lambda job: number(_share(job, targets), "{:.2f}".format), optional=True),
        Column("findings", lambda job: replace(_findings(job), link="findings" if job.findings else ""), left=True),
    )


def facts(jobs: Sequence[JobSummary], host: str) -> str:
    """Return what holds for all jobs of a suite on one host: `node1: Some Processor; 2 tenants, isolation v1`."""
    works = [dict(job.work) for job in jobs if job.work is not None]
    gpus = ", ".join(sorted({gpu for job in jobs for gpu in job.gpus}))
    parts = {name: sorted({work[of] for work in works if work[of]}) for name, of in OF_WORKS.items()}
    known = [f"{name} {', '.join(values)}" for name, values in parts.items() if values]
    return "; ".join([f"{host or 'an unnamed host'}{f': {gpus}' if gpus else ''}", *known])


def rate_columns(of: Callable[[T], Estimate | None]) -> Sequence[Column[T]]:
    """Return the columns of rate, interval, n and spread."""

    def rate(item: T) -> Measurement | None:
        if (estimate := of(item)) is None:
            return None
        n = f"{estimate.launches}L" if estimate.observations is None else f"{estimate.observations}o"
        return Measurement(estimate.rate, estimate.interval, n, (estimate.launches, estimate.observations))

    def spread(item: T) -> Cell:
        estimate = of(item)
        return Cell() if estimate is None else number(estimate.spread, percent, "spread")

    fields = ("rate", "low", "high", "launches", "observations")
    return *measured_columns("rate", rate, fields), Column("spread", spread)


OF_TENANT: Sequence[Column[tuple[str, Estimate]]] = (
    Column("tenant", lambda pair: word(pair[0], "tenant")),
    *rate_columns(lambda pair: pair[1]),
)


def _tenant_records(job: JobSummary) -> Iterator[Row]:
    for tenant, estimate in job.tenants.items():
        own = row(OF_TENANT, (tenant, estimate)).record
        yield Row(values={**_named(job), **own, **interference_cell(job, tenant).values})


def _named(job: JobSummary) -> dict[str, Value]:
    return {
        "suite": job.suite,
        "host": job.host,
        "job": job.label,
        "group": job.group,
        "unit": job.unit,
        "sharers": job.sharers,
        "verdict": job.verdict,
    }


def shared(job: JobSummary) -> str:
    """Return `processors shared by 2` where so many tenants have the same."""
    return f"processors shared by {job.sharers}" if job.sharers > 1 else ""


def bound(job: JobSummary) -> str:
    """Return `host-bound` where most of its records are: then its rate is no device's."""
    rules = [names.split(",") for (names,) in job.members.columns("findings").iter_rows()]
    return "host-bound" if 2 * sum("host_bound" in names for names in rules) > len(rules) else ""


def _computed(job: JobSummary) -> dict[str, Any]:
    """Return what it computed; the sentence on it stands among the notes."""
    return {} if job.compute is None else {name: of for name, of in asdict(job.compute).items() if name != "above"}


def _verdict(job: JobSummary) -> Cell:
    return replace(verdict_cell(job.verdict, worst_rule(job)), values={"worst_warning": worst_rule(job) or None})


def verdict_cell(verdict: str, rule: str) -> Cell:
    """Return a verdict, with the worst warning's rule beside it."""
    return Cell(verdict, style=style_of(verdict) if verdict else "", note=rule.replace("_", " "))


def worst_rule(job: JobSummary) -> str:
    return "" if job.doubt is None else job.doubt.rule


def _worst_over_best(job: JobSummary) -> Cell:
    if job.evenness is None:
        return Cell()
    ratio, slowest = job.evenness.worst_over_best, job.evenness.slowest
    text = f"{ratio:.3f}{'' if slowest is None else f' ({slowest})'}"
    return Cell(text, {"worst_over_best": ratio, "slowest": slowest})


def _device_load(job: JobSummary) -> Cell:
    return number(device_load_percent(job.members), "{:.0f} %".format, "device_load_percent")


def _steps(job: JobSummary) -> Cell:
    """Return `4.1 ms, 9.8 ms (9.1-11.2, n 1500)`: of several tenants or launches that of the slowest p99."""
    served = job.members.columns(*STEPS).drop_nulls("step_p99_ns").sort("step_p99_ns")
    if served.is_empty():
        return Cell()
    worst = served.row(-1, named=True)
    ends = worst["step_p99_low_ns"], worst["step_p99_high_ns"]
    around = numbers.TOO_SMALL if None in ends else "-".join(f"{end / 1e6:.3g}" for end in ends)
    text = f"{worst['step_p50_ns'] / 1e6:.3g} ms, {worst['step_p99_ns'] / 1e6:.3g} ms ({around}, n {worst['steps']})"
    return Cell(text, worst)


def _findings(job: JobSummary) -> Cell:
    values = {"errors": job.findings.get("error", 0), "warnings": job.findings.get("warning", 0)}
    return Cell(finding_counts(job.findings), values)


def interference_cell(job: JobSummary, tenant: str | None = None) -> Cell:
    """Return `4.6 % (3.9..5.2 %, n 5)`: what neighbours cost, its interval, and of how many launches."""
    kept = job.over_alone(tenant)
    if kept is None:
        return Cell()
    # The low end is where most is kept.
    high, low = [1 - end for end in kept.interval] if kept.interval else (None, None)
    n = launches_words(kept)
    around = (
        f"{100 * low:.1f}..{percent(high)}, n {n}"
        if low is not None and high is not None
        else f"{numbers.TOO_SMALL}: {n}"
    )
    quick = job.alone is not None and job.alone.quick
    if quick:
        around += ", quick"
    values = (kept.interference, low, high, *kept.n, int(quick))
    return Cell(percent(kept.interference), dict(zip(INTERFERENCE, values, strict=True)), note=f"({around})")


def _share(job: JobSummary, targets: Mapping[str, Target]) -> float | None:
    """Return a tenant's mean rate over the target of one device."""
    if job.name not in targets or job.node is None or job.name in NOT_IN_PG:
        return None
    return job.node.rate / max(1, len(job.tenants)) / targets[job.name].rate


def style_of(verdict: str) -> str:
    """Return the colour of a verdict; one that only `completed` has no rate."""
    return "green" if verdict == CLEAN else "yellow" if verdict.endswith((CLEAN, SUSPECT, "completed")) else "bold red"


def tenant_rates(job: JobSummary) -> str:
    """Return every tenant's rate; of many the slowest and the fastest."""
    return numbers.rates([estimate.rate for estimate in job.tenants.values()], ", ")


def _within(job: JobSummary) -> Cell:
    """Half the interval of each tenant's observations, of the launch where it is widest; of many the least and most.

    Only where launches are too few for an interval of their own, and no other column has it.
    """
    if job.node is None or job.node.interval is not None:
        return Cell()
    low, high, middle = map(pl.col, ("interval_low_items_s", "interval_high_items_s", "rate_items_s"))
    halves = job.members.columns(tenant=TENANT, half=(high - low) / (2 * middle)).drop_nulls()
    widest = halves.group_by("tenant", maintain_order=True).agg(pl.col("half").max())["half"].to_list()
    shown = widest if len(widest) <= SHOWN_TENANTS else [min(widest), max(widest)]
    return Cell((", " if shown is widest else "..").join(f"±{percent(half)}" for half in shown) or ABSENT)


def _document(job: JobSummary) -> dict[str, Any]:
    ratios = {tenant: job.over_alone(tenant) for tenant in job.tenants}
    node, kept = job.over_alone(), {tenant: asdict(ratio) for tenant, ratio in ratios.items() if ratio is not None}
    named = {name: printable(str(value)) for name, value in _named(job).items()}
    return named | {
        "launches": job.launches,
        "overlap": job.overlap,
        "device_load_percent": device_load_percent(job.members),
        "node": None if job.node is None else asdict(job.node),
        "tenants": {name: asdict(estimate) for name, estimate in job.tenants.items()},
        "evenness": None if job.evenness is None else asdict(job.evenness),
        "interference": {"node": node and asdict(node), "tenants": kept} if kept else None,
        "compute": _computed(job) or None,
        "work": None if job.work is None else dict(job.work),
        "doubt": None if job.doubt is None else {"rule": job.doubt.rule, "records": job.doubt.records},
        "findings": dict(job.findings),
    }
