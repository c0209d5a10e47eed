"""The rows of jobs: one for all users of a job, and one per user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cotenant.frames import pl
from cotenant.report.job_cells import ESTIMATE, is_audited, verdict_note, worst_rule
from cotenant.report.kept import kept_fields, kept_meanings, kept_values
from cotenant.report.meters import device_load_percent
from cotenant.report.summary import Estimate, JobSummary
from cotenant.report.view import Row, common, with_ends
from cotenant.results.columns import TENANT, equal_columns
from cotenant.stats.kept import Kept, joint

INTERFERENCE = (*kept_fields("interference"), "interference_quick")
STEPS = ("steps", "step_p50_ns", "step_p99_ns", "step_p99_low_ns", "step_p99_high_ns")
COMPUTE = ("tflops", "mfu", "ceiling_tflops", "of_ceiling")

FIELDS = {
    **common("suite", "host", "job", "group", "tenant", "unit"),
    "sharers": "users of the same processors",
    **with_ends("rate", "items per second; over launches the geometric mean", "low", "high"),
    "launches": "the launches that the rate is over",
    "observations": "the observations that the rate of a single launch is over; null if it is over launches",
    "spread": "the relative standard deviation between launches, or between observations",
    "fairness": "Jain's index of the users' rates",
    "worst_over_best": "the rate of the slowest user over the fastest one's",
    "slowest": "the user that is slower than the others beyond noise",
    "overlap": "the least share of the measured time in which all users ran",
    "device_load_percent": "the mean load of the devices",
    **common("verdict"),
    "worst_warning": "the rule of the worst warning",
    "audited": "1 if our loop watched steps of every user",
    "errors": "the findings that make a launch invalid",
    "warnings": "the findings that a rate may suffer from",
    **kept_meanings("interference", "the share of its rate alone that is lost beside the others"),
    "interference_quick": "1 if there were few observations alone",
    "tflops": "10^12 operations per second of a user",
    "mfu": "tflops over the peak of the datasheet",
    "ceiling_tflops": "10^12 operations per second of a matrix product in the same slice",
    "of_ceiling": "tflops over ceiling_tflops",
    "steps": "the steps of the user and launch with the slowest p99",
    "step_p50_ns": "their median time",
    **with_ends("step_p99_ns", "their 99th percentile", "step_p99_low_ns", "step_p99_high_ns"),
    **kept_meanings("kept", "the share of its rate alone that is kept beside the others"),
    **kept_meanings("users_kept", "the mean of the shares that users keep"),
    "why": "the reason of the verdict: the rule, and whether host-bound or unaudited",
    "doubtful": "the records that have the worst warning",
    "infos": "the findings that are information",
    "all_launches": "the launches, with those that have no rate",
    "evenness_p": "the chance of such a range between equal users",
    "within": "half the 95 % interval of the median of a launch's observations, over the median; of several the widest",
}
WORK = {word: column.meaning for word, column in equal_columns().items() if word not in FIELDS}
"""The fields of a job's work, equal in all its launches."""
FIELDS |= WORK


def job_row(job: JobSummary) -> dict[str, Any]:
    """Return the row of all users of a job. Besides FIELDS it has their `rates`, None without any."""
    even, compute = job.evenness, job.compute
    return {
        **dict(job.work or ()),
        **_named(job),
        **estimate_row(job.node),
        "fairness": even and even.jain,
        "worst_over_best": even and even.worst_over_best,
        "slowest": even and even.slowest,
        "evenness_p": even and even.p,
        "overlap": job.overlap,
        "device_load_percent": device_load_percent(job.members),
        "worst_warning": worst_rule(job) or None,
        "audited": int(is_audited(job)),
        "why": verdict_note(job),
        "doubtful": job.doubt and job.doubt.records,
        **{f"{name}s": job.findings.get(name, 0) for name in ("error", "warning", "info")},
        "all_launches": job.launches,
        **_shares(job, None),
        **kept_row("users_kept", joint(job.shares) if job.shares and job.alone is not None else None),
        **{name: compute and getattr(compute, name) for name in COMPUTE},
        **_slowest_steps(job),
        "rates": [estimate.rate for estimate in job.tenants.values()] or None,
    }


def user_rows(job: JobSummary) -> Iterator[Row]:
    """Yield a row for each user of a job."""
    half = half_intervals(job)
    for tenant, estimate in job.tenants.items():
        rate = {"tenant": tenant, **estimate_row(estimate), "within": half.get(tenant)}
        yield {**_named(job), **rate, **_shares(job, tenant)}


def half_intervals(job: JobSummary) -> Mapping[str, float]:
    """Return each user's widest half 95 % interval over a launch's observations, relative to their median."""
    low, high, middle = map(pl.col, ("interval_low_items_s", "interval_high_items_s", "rate_items_s"))
    halves = job.members.columns(tenant=TENANT, half=(high - low) / (2 * middle)).drop_nulls()
    return dict(halves.group_by("tenant", maintain_order=True).max().iter_rows())


def kept_row(name: str, kept: Kept | None) -> dict[str, Any]:
    """Return the fields of a kept share; null if it is unknown."""
    fields = kept_fields(name)
    return dict.fromkeys(fields) | kept_values(kept, fields)


def _named(job: JobSummary) -> dict[str, Any]:
    return {
        "suite": job.suite,
        "host": job.host,
        "job": job.label,
        "group": job.group,
        "tenant": None,
        "unit": job.unit,
        "sharers": job.sharers,
        "verdict": job.verdict,
    }


def estimate_row(estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return dict.fromkeys(ESTIMATE)
    ends = estimate.interval or (None, None)
    values = (estimate.rate, *ends, estimate.launches, estimate.observations, estimate.spread)
    return dict(zip(ESTIMATE, values, strict=True))


def _shares(job: JobSummary, tenant: str | None) -> dict[str, Any]:
    """Return the share of its rate alone that a user keeps, or all users keep, and the share that neighbours take."""
    kept = job.kept.get(tenant)
    if kept is None or job.alone is None:
        return kept_row("kept", kept)
    # The highest kept share is the lowest loss.
    high, low = [1 - end for end in kept.interval] if kept.interval else (None, None)
    values = (1 - kept.value, low, high, kept.n, kept.over, int(job.alone.quick))
    return {**kept_row("kept", kept), **dict(zip(INTERFERENCE, values, strict=True))}


def _slowest_steps(job: JobSummary) -> Mapping[str, Any]:
    """Return the step times of the user and launch with the slowest p99."""
    served = job.members.columns(*STEPS).drop_nulls(("step_p50_ns", "step_p99_ns", "steps")).sort("step_p99_ns")
    return dict.fromkeys(STEPS) if served.is_empty() else served.row(-1, named=True)
