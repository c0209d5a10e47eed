"""Describes a job in a table: its users' rates, its verdict, its findings, what it keeps, each as one cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cotenant.frames import pl
from cotenant.report.grid import Cell, Value
from cotenant.report.kept import around, kept_fields
from cotenant.report.numbers import ABSENT, SHOWN_TENANTS, TOO_SMALL, at_one_scale, percent, rates
from cotenant.report.problems import finding_counts
from cotenant.report.summary import JobSummary
from cotenant.results.columns import TENANT
from cotenant.results.record import CLEAN, SUSPECT, UNAUDITED
from cotenant.stats.kept import joint
from cotenant.text import joined

INTERFERENCE = (*kept_fields("interference"), "interference_quick")
STEPS = ("steps", "step_p50_ns", "step_p99_ns", "step_p99_low_ns", "step_p99_high_ns")


def shared(job: JobSummary) -> str:
    """Return `processors shared by 2` if 2 tenants have the same processors, "" if none share."""
    return f"processors shared by {job.sharers}" if job.sharers > 1 else ""


def bound(job: JobSummary) -> str:
    """Return `host-bound` if most of a job's records are: its rate then says nothing about the device."""
    rules = job.members.columns("findings")["findings"]
    return "host-bound" if 2 * sum("host_bound" in names.split(",") for names in rules) > len(rules) else ""


def job_verdict_cell(job: JobSummary, anchors: Mapping[str, str]) -> Cell:
    """Return a job's verdict, linked to its worst warning's place among `anchors`."""
    rule = worst_rule(job)
    values = {"worst_warning": rule or None, "audited": int(is_audited(job))}
    return replace(verdict_cell(job.verdict, verdict_note(job)), values=values, note_link=anchors.get(rule, ""))


def verdict_cell(verdict: str, note: str) -> Cell:
    """Return a verdict in its colour, with notes on it beside it; a job that only `completed` has no rate."""
    is_sound = verdict.endswith((CLEAN, SUSPECT, "completed"))
    style = "green" if verdict == CLEAN else "yellow" if is_sound else "bold red"
    return Cell(verdict, style=style if verdict else "", note=note)


def verdict_note(job: JobSummary) -> str:
    """Return the rule behind a verdict, what bounds the rate, and whether rates alone are suspect or all unaudited."""
    rule = (worst_rule(job) or job.error).replace("_", " ")
    alone = f"alone {SUSPECT}" if job.alone is not None and job.alone.doubts else ""
    return joined(", ", rule, bound(job), alone, "" if is_audited(job) else UNAUDITED)


def is_audited(job: JobSummary) -> bool:
    return False not in job.members.columns("audited")["audited"]


def worst_rule(job: JobSummary) -> str:
    return "" if job.doubt is None else job.doubt.rule


def worst_over_best_cell(job: JobSummary) -> Cell:
    if job.evenness is None:
        return Cell()
    ratio, slowest = job.evenness.worst_over_best, job.evenness.slowest
    text = f"{ratio:.3f}{'' if slowest is None else f' ({slowest})'}"
    return Cell(text, {"worst_over_best": ratio, "slowest": slowest})


def steps_cell(job: JobSummary) -> Cell:
    """Return `4.1 ms, 9.8 ms (9.1-11.2, n 1500)`: the tenant and launch with the slowest p99."""
    served = job.members.columns(*STEPS).drop_nulls(("step_p50_ns", "step_p99_ns", "steps")).sort("step_p99_ns")
    if served.is_empty():
        return Cell()
    worst = served.row(-1, named=True)
    ends = worst["step_p99_low_ns"], worst["step_p99_high_ns"]
    around = TOO_SMALL if None in ends else "-".join(f"{end / 1e6:.3g}" for end in ends)
    text = f"{worst['step_p50_ns'] / 1e6:.3g} ms, {worst['step_p99_ns'] / 1e6:.3g} ms ({around}, n {worst['steps']})"
    return Cell(text, worst)


def findings_cell(job: JobSummary) -> Cell:
    values = {"errors": job.findings.get("error", 0), "warnings": job.findings.get("warning", 0)}
    return Cell(finding_counts(job.findings), values, link="findings" if job.findings else "")


def kept_cell(job: JobSummary) -> Cell:
    """Return `95 % (94-96)`: the share of its rate alone that each user keeps; programs read what all lose."""
    if not job.shares or job.alone is None:
        return Cell(values=interference(job))
    kept = joint(job.shares)
    ends = around(kept, lambda low, high: f"{100 * low:.0f}-{100 * high:.0f}")
    return Cell(f"{100 * kept.value:.0f} % ({ends})", interference(job))


def interference(job: JobSummary, tenant: str | None = None) -> dict[str, Value]:
    """Return the share that a tenant, or the node, loses to neighbours, with its interval and n."""
    kept = job.kept.get(tenant)
    if kept is None or job.alone is None:
        return {}
    # The loss is lowest where the kept share is highest.
    high, low = [1 - end for end in kept.interval] if kept.interval else (None, None)
    values = (1 - kept.value, low, high, kept.n, kept.over, int(job.alone.quick))
    return dict(zip(INTERFERENCE, values, strict=True))


def users_heading(jobs: Sequence[JobSummary]) -> str:
    """Return the heading over the rates of jobs' users; it says so where only the lowest and highest stand below."""
    counts = {len(job.tenants) for job in jobs if job.tenants}
    if max(counts, default=0) <= SHOWN_TENANTS:
        return "each user"
    return f"{counts.pop()} users: lowest-highest" if len(counts) == 1 else "each, or lowest-highest"


def users_cell(job: JobSummary) -> Cell:
    """Return every user's rate at the scale that `rate_unit` names, or of many the lowest and the highest."""
    found = [estimate.rate for estimate in job.tenants.values()]
    if len(found) > SHOWN_TENANTS:
        return Cell("-".join(at_one_scale([min(found), max(found)])[0]), order=min(found))
    return Cell(" ".join(at_one_scale(found)[0]), order=found[0]) if found else Cell()


def rate_unit(job: JobSummary) -> str:
    """Return the unit of its users' rates, with the letter of their scale: `k image/s`."""
    _, letter = at_one_scale([estimate.rate for estimate in job.tenants.values()])
    return f"{letter} {job.unit}/s".lstrip() if job.unit else letter or ABSENT


def tenant_rates(job: JobSummary) -> str:
    """Return every tenant's rate, or of many the slowest and the fastest."""
    return rates([estimate.rate for estimate in job.tenants.values()], ", ")


def all_measured_once(jobs: Sequence[JobSummary]) -> bool:
    """Whether no job has an interval other than that of a single launch's observations."""
    return bool(jobs) and all(job.node is None or job.node.launches == 1 for job in jobs)


def within_cell(job: JobSummary, once: bool) -> Cell:
    """Return half the widest interval over a launch's observations for each tenant; for many the least and most.

    The cell is empty if there are launches enough for an interval over them, unless all jobs were measured `once`.
    """
    if job.node is None or (job.node.interval is not None and not once):
        return Cell()
    low, high, middle = map(pl.col, ("interval_low_items_s", "interval_high_items_s", "rate_items_s"))
    halves = job.members.columns(tenant=TENANT, half=(high - low) / (2 * middle)).drop_nulls()
    widest = halves.group_by("tenant", maintain_order=True).max()["half"].to_list()
    shown = widest if len(widest) <= SHOWN_TENANTS else [min(widest), max(widest)]
    ends = [percent(half).removesuffix(" %") for half in shown]
    return Cell(f"±{(', ' if shown is widest else '..').join(ends)} %" if ends else ABSENT)
