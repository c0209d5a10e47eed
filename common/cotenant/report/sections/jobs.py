"""The section with a panel per job: its rates, its meters, its users' observations, its newest launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from cotenant.frames import pl
from cotenant.report.job_cells import shared, tenant_rates
from cotenant.report.meters import NAMES
from cotenant.report.numbers import interval, percent, rate
from cotenant.report.pictures.canvas import shares_axis
from cotenant.report.problems import rule_anchors, rules_of
from cotenant.report.section import Details, Section
from cotenant.report.sections.contents import PageContents
from cotenant.report.sections.job_pictures import memory, newest_launch, observations, over_time, whole_rate
from cotenant.report.summary import Estimate, JobSummary, Summary
from cotenant.results.drawn import DEVICE_QUANTITIES, Drawn
from cotenant.results.launches import grouped
from cotenant.results.read import read_drawn
from cotenant.text import joined, many

POINTS = 8000
"""About the most observations that a page draws: each takes some 30 bytes."""
LEAST_POINTS = 20
OF_AXIS = "All jobs' observations have one axis, in % of the median of the job's users, so that their spreads compare."
OF_OBSERVATIONS = (
    ("dot", "an observation; a row of dots is a launch"),
    ("median", "the user's rate"),
    ("range", "its 95 % interval over launches"),
    ("range within", "of a single launch's observations"),
)
OF_TIMELINES = (
    ("warm", "warm-up; its end is READY, and the build lies before it"),
    ("wait", "waits for GO"),
    ("skipped", "observed, not kept"),
    ("kept", "kept, beside the others"),
    ("alone", "alone, the others held still"),
    ("held", "held still while others run"),
    ("audit", "audit: steps are checked, outside the clock"),
    ("cool", "load goes on, unmeasured"),
    ("common", "load of all users"),
)


def jobs(contents: PageContents) -> Section | None:
    """Return a panel for each job that has a rate; together they draw about POINTS observations."""
    if not (details := [*_panels(contents.summary)]):
        return None
    legend = OF_OBSERVATIONS, OF_TIMELINES
    return Section("Jobs", [OF_AXIS], details=details, legend=legend, anchor="jobs", short="Jobs")


def _panels(summary: Summary) -> Iterator[Details]:
    most = max(LEAST_POINTS, POINTS // max(1, sum(len(job.members) for job in summary.jobs)))
    anchors = rule_anchors(summary.findings)
    rated = [(index, job, job.node) for index, job in enumerate(summary.jobs) if job.node is not None]
    ends = shares_axis(end for _, job, _ in rated for end in _extremes(job))
    several = len({job.host for _, job, _ in rated}) > 1
    for index, job, node in rated:
        newest, tenants = max(job.rates, key=lambda launch: launch.start_time).run_id, read_drawn(job.members)
        launch = job.members.where(pl.col("run_id") == newest)
        label, limits = f"{job.label} on {job.host}" if several else job.label, memory(launch, f"j{index}m")
        pictures = (
            observations(job, tenants, ends, most, f"j{index}s"),
            newest_launch(launch, tenants, newest, f"j{index}t"),
            limits,
            *over_time(launch, f"j{index}", limits is not None),
        )
        together = f" · together {rate(node.rate)}" if len(job.tenants) > 1 else ""
        yield Details(
            title=label,
            facts=_facts(job),
            figure=tenant_rates(job),
            unit=f"{job.unit or 'items'}/s{together}",
            note=_span(node),
            links=[(rule.replace("_", " "), anchors[rule]) for rule in rules_of(job.members) if rule in anchors],
            sentences=[*filter(None, [joined("; ", _meters(tenants), _compute(job))])],
            pictures=[
                picture._replace(heard=f"{picture.title}, of {label}: {picture.caption}")
                for picture in pictures
                if picture is not None
            ],
            anchor=f"job{index}",
            is_open=job.doubt is not None,
        )


def _extremes(job: JobSummary) -> list[float]:
    """Return the lowest and the highest rate of any observation, as shares of the whole."""
    rates = job.members.columns(pl.col("rate_min_items_s").min(), pl.col("rate_max_items_s").max()).row(0)
    return [end / whole_rate(job) for end in rates if end is not None]


def _span(estimate: Estimate) -> str:
    """Return the interval and n in words."""
    counted = many(estimate.launches, "launch")
    if estimate.launches == 1 and estimate.interval is None:
        return "measured once"
    if estimate.observations is not None:
        counted = f"{many(estimate.observations, 'observation')} of 1 launch"
    return (
        f"95 %: {interval(*estimate.interval)}, {counted}"
        if estimate.interval
        else f"{counted}: too few for an interval"
    )


def _facts(job: JobSummary) -> str:
    batch_size, precision = job.members.columns("batch_size", "precision").row(0)
    batch = f"batch {batch_size}" if batch_size is not None else ""
    fairness = f"fairness {job.evenness.jain:.4f}" if job.evenness is not None else ""
    return joined(" · ", job.group, many(len(job.tenants), "user"), shared(job), batch, precision, fairness)


def _meters(tenants: Sequence[Drawn]) -> str:
    """Return the means of the devices' meters, in words, while the launches that count were timed."""
    means = grouped((meter for tenant in tenants for meter in tenant.meters), lambda meter: meter.quantity)
    parts = []
    for quantity in filter(means.get, DEVICE_QUANTITIES):
        name, unit, scale = NAMES[quantity]
        parts.append(f"{name.lower()} {fmean(meter.mean for meter in means[quantity]) / scale:.4g} {unit}")
    return f"per device: {', '.join(parts)}" if parts else ""


def _compute(job: JobSummary) -> str:
    """Return a tenant's FLOP/s in words, as shares of the datasheet's peak and of the measured ceiling."""
    if (compute := job.compute) is None:
        return ""
    parts = [f"{rate(compute.tflops * 1e12)} FLOP/s"]
    if compute.mfu is not None:
        parts.append(f"MFU {percent(compute.mfu)}")
    if compute.of_ceiling is not None and compute.ceiling_tflops is not None:
        parts.append(f"{percent(compute.of_ceiling)} of the ceiling of {rate(compute.ceiling_tflops * 1e12)} FLOP/s")
    return f"per user: {', '.join(parts)}"
