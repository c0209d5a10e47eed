"""Shows a job in a table: its users' rates, its verdict, its intervals, the share it keeps, each as one cell."""

from __future__ import annotations

from collections.abc import Sequence

from cotenant.report.kept import around, n_text
from cotenant.report.numbers import ABSENT, SHOWN_TENANTS, TOO_SMALL, at_one_scale, percent, rates
from cotenant.report.summary import JobSummary
from cotenant.report.view import Cell, Column, measurement
from cotenant.results.record import CLEAN, SUSPECT, UNAUDITED
from cotenant.stats.kept import Kept, Over
from cotenant.text import joined

ESTIMATE = ("rate", "low", "high", "launches", "observations", "spread")
"""The fields of an `Estimate`."""


def shared(job: JobSummary) -> str:
    """Return `processors shared by 2` if 2 tenants have the same processors, "" if none share."""
    return f"processors shared by {job.sharers}" if job.sharers > 1 else ""


def bound(job: JobSummary) -> str:
    """Return `host-bound` if most of a job's records are: the rate then says nothing about the device."""
    rules = job.members.columns("findings")["findings"]
    return "host-bound" if 2 * sum("host_bound" in names.split(",") for names in rules) > len(rules) else ""


def verdict_cell(verdict: str, note: str) -> Cell:
    """Return a verdict in its colour, with a note beside it; a job that only `completed` has no rate."""
    is_sound = verdict.endswith((CLEAN, SUSPECT, "completed"))
    style = "green" if verdict == CLEAN else "yellow" if is_sound else "bold red"
    return Cell(verdict, style=style if verdict else "", note=note)


def verdict_note(job: JobSummary) -> str:
    """Return the rule behind a verdict, `host-bound`, and whether rates alone are suspect or some rates unaudited."""
    rule = (worst_rule(job) or job.error).replace("_", " ")
    alone = f"alone {SUSPECT}" if job.alone is not None and job.alone.doubts else ""
    return joined(", ", rule, bound(job), alone, "" if is_audited(job) else UNAUDITED)


def is_audited(job: JobSummary) -> bool:
    return False not in job.members.columns("audited")["audited"]


def worst_rule(job: JobSummary) -> str:
    return "" if job.doubt is None else job.doubt.rule


def users_heading(jobs: Sequence[JobSummary]) -> str:
    """Return the heading over the rates of jobs' users; it says if only the lowest and highest stand below."""
    counts = {len(job.tenants) for job in jobs if job.tenants}
    if max(counts, default=0) <= SHOWN_TENANTS:
        return "each user"
    return f"{counts.pop()} users: lowest-highest" if len(counts) == 1 else "each, or lowest-highest"


def tenant_rates(job: JobSummary) -> str:
    """Return every tenant's rate, or for many the slowest and the fastest."""
    return rates([estimate.rate for estimate in job.tenants.values()], ", ")


def all_measured_once(jobs: Sequence[JobSummary]) -> bool:
    """Return whether no job has more than one launch with a rate; False without jobs."""
    return bool(jobs) and all(job.node is None or job.node.launches == 1 for job in jobs)


def estimate_columns(heading: str) -> list[Column]:
    """Return the columns of rate, interval, n and spread."""

    def n(launches: int, observations: int | None) -> str:
        return n_text(launches, "launches") if observations is None else n_text(observations, "observations")

    def once(launches: int, observations: int | None) -> bool:
        return observations is None and launches == 1

    return [*measurement(heading, ESTIMATE[:-1], n, once=once), Column("spread", show=percent)]


def users_cell(found: Sequence[float]) -> Cell:
    """Return every user's rate at the scale that `rate_unit` names, or for many the lowest and the highest."""
    if len(found) > SHOWN_TENANTS:
        return Cell("-".join(at_one_scale([min(found), max(found)])[0]), order=min(found))
    return Cell(" ".join(at_one_scale(found)[0]), order=found[0])


def rate_unit(unit: str, found: Sequence[float] | None) -> str:
    """Return the unit of users' rates, with the letter of their scale: `k image/s`."""
    _, letter = at_one_scale(found or [])
    return f"{letter} {unit}/s".lstrip() if unit else letter or ABSENT


def kept_text(value: float, low: float | None, high: float | None, n: int, over: Over) -> str:
    """Return `95 % (94-96)`: the share of its rate alone that each user keeps."""
    kept = Kept(value, None if low is None or high is None else (low, high), n, over)
    return f"{100 * value:.0f} % ({around(kept, lambda low, high: f'{100 * low:.0f}-{100 * high:.0f}')})"


def within_text(halves: Sequence[float]) -> str:
    """Return `±0.5, 0.7 %`: a half interval for each user; for many the least and the greatest."""
    shown = halves if len(halves) <= SHOWN_TENANTS else [min(halves), max(halves)]
    ends = [percent(half).removesuffix(" %") for half in shown]
    return f"±{(', ' if shown is halves else '..').join(ends)} %"


def steps_text(steps: int, p50_ns: float, p99_ns: float, low_ns: float | None, high_ns: float | None) -> str:
    """Return `4.1 ms, 9.8 ms (9.1-11.2, n 1500)`."""
    ends = TOO_SMALL if low_ns is None or high_ns is None else f"{low_ns / 1e6:.3g}-{high_ns / 1e6:.3g}"
    return f"{p50_ns / 1e6:.3g} ms, {p99_ns / 1e6:.3g} ms ({ends}, n {steps})"
