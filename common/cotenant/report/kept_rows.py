"""The rows of the long table of kept shares: a job's tenants, and the measures of tenants beside each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from statistics import median
from typing import Any

from cotenant.frames import pl
from cotenant.report.alone import POWER, STEP_TIMES, RecordRow, Side
from cotenant.report.kept import kept_values, rate_fields, rate_meanings, rate_values
from cotenant.report.summary import JobSummary
from cotenant.report.view import common
from cotenant.results.columns import TENANT
from cotenant.results.launches import grouped
from cotenant.stats.interference import energy_over_alone, mix_measures, ratios
from cotenant.stats.kept import Kept
from cotenant.stats.launches import across_launches

COPIES, MIX, PAIR, PRESSURE = "copies", "mix", "pair", "pressure"
KEPT, UNSLICED_KEPT, WORTH, UNSLICED_ALONE = "kept", "unsliced_kept", "worth", "unsliced_alone"
MEASURES = ("stp", "antt", "worst_slowdown", "fairness", "tax")
SLICES = "slices"
"""The mode of tenants that share processors but no device, or have a device instance each."""
VALUE = ("value", "low", "high", "n", "over")
TOGETHER, ALONE = rate_fields("together"), rate_fields("alone")

FIELDS = {
    **common("suite", "host", "isolation"),
    "job": "the job; null in a row of several",
    "difference": "the values in which its work differs from other work of its name",
    **common("tenant", "unit"),
    "company": "copies of the same job, a mix of jobs, a pair of jobs, or a neighbour of known pressure",
    "mix": "the name of its mix",
    "neighbours": "the jobs of the other users, by commas",
    "resource": "what the neighbour presses on",
    "level": "the pressure in percent",
    "achieved": "the items per second of the neighbour of known pressure",
    "achieved_unit": "their unit",
    **rate_meanings("together", "beside the company"),
    **rate_meanings("alone", "alone"),
    **common("baseline"),
    "measure": (
        "kept: together over alone; unsliced_kept: together without slices over alone in the slice; worth: together in "
        "slices over together without; unsliced_alone: a rate alone without a slice; stp, antt, worst_slowdown, "
        "fairness, tax, energy, joules_per_item: of all users together"
    ),
    "value": "the measure",
    "low": "lower end of its 95 % interval",
    "high": "upper end of its 95 % interval",
    "n": "how many rounds, observations, launches or jobs it is over",
    "over": "rounds or observations of one launch, launches, or jobs",
    "notable": "of fairness: whether users differ beyond noise; null below two launches",
    "mode": "how users share a device; slices where they share none",
    "sharers": "users of its device, or of its processors if it has none",
    "entitlement": "its part of these",
    "processor_sharers": "users of its processors",
    **dict.fromkeys(STEP_TIMES, "of a step, in nanoseconds: median over launches"),
    **{f"alone_{name}": "the same, alone" for name in STEP_TIMES},
    "doubts": "the rule of the worst warning on the launches together",
    "alone_doubts": "the rules of warnings on the launches alone",
    **common("verdict"),
    "notes": "why numbers are not known",
    "work": "the hash of its work",
}
_TYPES: dict[str, Any] = {
    **dict.fromkeys((*TOGETHER[:3], *ALONE[:3], *VALUE[:3], "achieved", "entitlement"), pl.Float64),
    **dict.fromkeys((*STEP_TIMES, *(f"alone_{name}" for name in STEP_TIMES)), pl.Float64),
    **dict.fromkeys((TOGETHER[3], ALONE[3], "n", "level", "sharers", "processor_sharers"), pl.Int64),
    **dict.fromkeys(("doubts", "alone_doubts", "notes"), pl.List(pl.String)),
    "notable": pl.Boolean,
}
SCHEMA = pl.Schema({name: _TYPES.get(name, pl.String) for name in FIELDS})

TableRow = dict[str, Any]
"""A row by FIELDS; fields without a value may be missing."""


def rows_of_job(
    job: JobSummary, company: str, tenants: Iterable[str | None], alone: Side | None, **more: Any
) -> list[TableRow]:
    """Return a row per tenant, or for the node under None: the share that it keeps of its rate on the side `alone`."""
    alone = alone or Side()
    names = ("share", "share_asked", "device_sharers", "sharers", "entitlement", *STEP_TIMES)
    records = grouped(job.members.columns(*names, who=TENANT).to_dicts(), lambda row: str(row["who"]))
    shared = {
        "suite": job.suite,
        "host": job.host,
        "isolation": job.isolation,
        "job": job.cell,
        "unit": job.unit,
        "company": company,
        "mix": job.mix or None,
        "measure": KEPT,
        "processor_sharers": job.sharers,
        "doubts": [job.doubt.rule] if job.doubt else [],
        "alone_doubts": [*alone.doubts],
        "verdict": job.verdict,
        "work": work_hash(job),
        **more,
    }
    rows = []
    for tenant in tenants:
        row = shared | {"tenant": tenant, "baseline": alone.baseline if alone.of(tenant) else ""}
        row |= rate_values(job.together.across(tenant), TOGETHER) | rate_values(alone.across(tenant), ALONE)
        row |= kept_values(job.kept.get(tenant), VALUE)
        if found := records.get(tenant or ""):
            row |= _part(found[0]) | _steps("", found) | _steps("alone_", alone.rows.get(tenant or "", {}).values())
        rows.append(row)
    return rows


def work_hash(job: JobSummary) -> str:
    """Return the hash of a job's work; "" if no launch counts."""
    return next(iter(job.members.columns("work").to_series()), "")


def _part(record: RecordRow) -> TableRow:
    """Return the mode in which a tenant shares its device, or without one its processors, and its part."""
    mode = record["share"] or record["share_asked"] or SLICES
    sharers = record["sharers" if mode == SLICES else "device_sharers"]
    return {"mode": mode, "sharers": sharers, "entitlement": record["entitlement"] or 1 / sharers}


def _steps(prefix: str, rows: Iterable[RecordRow]) -> TableRow:
    """Return the medians of step times over launches; nothing if no steps were timed."""
    timed = [times for row in rows if None not in (times := [row[name] for name in STEP_TIMES])]
    columns = zip(*timed, strict=True)
    return {f"{prefix}{name}": median(column) for name, column in zip(STEP_TIMES, columns, strict=False)}


def why_not(job: JobSummary) -> str:
    """Return why the shares that a job's tenants keep are unknown; "" if they are known."""
    if not job.rates:
        return f"no launch counts ({job.verdict})"
    if job.alone is None:
        return f"{job.cell} was not measured alone: --baseline blocks, or whole"
    if any(not job.alone.of(tenant) for tenant in job.together.tenants):
        return f"{job.cell} alone: {job.alone.reason or 'not in this slice'}"
    return ""


def measure_rows(jobs: Collection[JobSummary], users: Sequence[TableRow]) -> list[TableRow]:
    """Return MEASURES of all users of these jobs, and the energy of their items together over alone, if it is known.

    Empty if no repetition has all users together and alone.
    """
    together = {tenant: rates for job in jobs for tenant, rates in job.together.tenants.items()}
    sides = {tenant: job.alone or Side() for job in jobs for tenant in job.together.tenants}
    kept = {tenant: share for job in jobs for tenant, share in job.kept.items()}
    progress = [kept[row["tenant"]] for row in users]
    # The number of devices, or slices: each of K sharers counts for 1 / K.
    slices = sum(1 / row["sharers"] for row in users)
    found = mix_measures(progress, together, {tenant: side.of(tenant) for tenant, side in sides.items()}, slices)
    if found is None:
        return []
    rows: list[TableRow] = [{"measure": name, **kept_values(getattr(found, name), VALUE)} for name in MEASURES]
    rows[MEASURES.index("fairness")]["notable"] = found.differences and found.differences.notable
    alone_j = {
        tenant: {uid: row[POWER] / row["rate_items_s"] for uid, row in side.rows.get(tenant, {}).items() if row[POWER]}
        for tenant, side in sides.items()
    }
    energy = energy_over_alone(_watts(jobs), together, alone_j)
    return rows if energy is None else [*rows, {"measure": "energy", **kept_values(energy, VALUE)}]


def joules_rows(job: JobSummary) -> list[TableRow]:
    """Return the row of a job's joules per item; none if its devices' power is unknown."""
    joules = [*ratios(_watts([job]), job.together.node).values()]
    if not joules:
        return []
    across = across_launches(joules)
    kept = Kept(across.rate, across.interval, across.n, "launches")
    return [{"measure": "joules_per_item", **kept_values(kept, VALUE)}]


def _watts(jobs: Collection[JobSummary]) -> dict[int, float]:
    """Return the watts of all devices in the launches of these jobs, by uid; a shared device counts once."""
    devices: dict[int, dict[str, float | None]] = defaultdict(dict)
    for job in jobs:
        for uid, device, power_w in job.members.columns("run_id", "vcd", POWER).iter_rows():
            devices[uid][device] = power_w
    return {uid: sum(filter(None, powers.values())) for uid, powers in devices.items() if all(powers.values())}
