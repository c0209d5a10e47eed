"""States in words the n and the intervals of the rates and kept shares in a table of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cotenant.report.kept import QUICKLY, n_text
from cotenant.report.numbers import extent
from cotenant.report.summary import Estimate, JobSummary
from cotenant.results.launches import grouped
from cotenant.stats.kept import joint
from cotenant.text import joined


def basis(jobs: Sequence[JobSummary]) -> str:
    """Return a sentence on the columns of users' rates and kept shares; "" if no job has a rate."""
    estimates = [estimate for job in jobs for estimate in job.tenants.values()]
    shares = [joint(job.shares) for job in jobs if job.shares]
    if not estimates:
        return ""
    rates = f"each user: {'; '.join(_of_rates(estimates))}"
    over = grouped(shares, lambda share: share.over)
    counts = [f"{_counts([share.n for share in part], name)}{_of_one(part[0].within)}" for name, part in over.items()]
    quick = QUICKLY if any(job.alone is not None and job.alone.quick for job in jobs) else ""
    kept = f"kept: the rate over the rate alone{quick}, in brackets its 95 % interval, of {' or '.join(counts)}"
    within = any(share.within for share in shares) or any(estimate.observations is not None for estimate in estimates)
    text = joined(". ", rates, kept if shares else "", "Another launch may differ" if within else "")
    return f"{text}."


def _of_rates(estimates: Sequence[Estimate]) -> Iterator[str]:
    """Yield the n and the intervals of rates over launches, and of rates of one launch."""
    several = [estimate for estimate in estimates if estimate.observations is None]
    if several:
        yield f"the mean over {_counts([estimate.launches for estimate in several], 'launches')}{_ends(several)}"
    if counts := [estimate.observations for estimate in estimates if estimate.observations is not None]:
        once = [estimate for estimate in estimates if estimate.observations is not None]
        yield f"the median of {_counts(counts, 'observations')} of one launch{_ends(once)}"


def _ends(estimates: Sequence[Estimate]) -> str:
    """Return the half-widths of the 95 % intervals in words, from the narrowest to the widest."""
    halves = [
        50 * (estimate.interval[1] - estimate.interval[0]) / estimate.rate
        for estimate in estimates
        if estimate.interval is not None
    ]
    if not halves:
        return ", too few for an interval"
    some = f" ({len(halves)} of {len(estimates)} users have one)" if len(halves) < len(estimates) else ""
    return f", its 95 % interval ±{extent(halves, '{:.1f}'.format)} %{some}"


def _counts(counts: Sequence[int], over: str) -> str:
    return n_text(counts[0], over) if len(set(counts)) == 1 else f"{extent(counts)} {over}"


def _of_one(within: bool) -> str:
    return " of one launch" if within else ""
