"""The figures on top of a page."""

from __future__ import annotations

from dataclasses import dataclass

from cotenant.report.numbers import at_most
from cotenant.report.summary import PASSED, Summary


@dataclass(frozen=True, slots=True)
class Card:
    """One figure: what it is, its value, and what it is of. The `lead` is the one to look at first."""

    name: str
    value: str
    note: str
    lead: bool = False


def cards(summary: Summary) -> list[Card]:
    """Return what can be said of any directory of records; what nobody measured has no card."""
    jobs = summary.jobs
    passed = sum(job.verdict == PASSED for job in jobs)
    found = [Card("Jobs passed", f"{passed} / {len(jobs)}", _of_launches(summary))]
    even = [(job.evenness.worst_over_best, job.label) for job in jobs if job.evenness is not None]
    if even:
        worst, name = min(even)
        found.append(Card("Worst / best tenant", f"{worst:.3f}", f"the least even job: {name}"))
    overlaps = [job.overlap for job in jobs if job.overlap is not None]
    if overlaps:
        found.append(
            Card("Overlap", at_most(min(overlaps)), "of the measured time, at the least, lay beside all tenants")
        )
    errors, warnings = (sum(one.severity == name for one in summary.findings) for name in ("error", "warning"))
    found.append(Card("Findings", f"{errors} + {warnings}", "errors, and warnings, each counted once"))
    return found


def _of_launches(summary: Summary) -> str:
    counts = [len(job.rates) for job in summary.jobs]
    least, most = min(counts, default=0), max(counts, default=0)
    several = "" if most == 1 else "es"
    return f"{least if least == most else f'{least} to {most}'} launch{several} each count"
