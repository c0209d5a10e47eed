"""A rate that rises or falls over a launch: its median is that of one moment among others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding
from cotenant.findings.rules.kept import rates

if TYPE_CHECKING:
    from cotenant.results.record import Record
    from cotenant.stats.steadiness import Drift

MOST_CHANGE, UNLIKELY = 0.01, 0.01


def is_drift(found: Drift) -> bool:
    """Whether a trend is neither chance nor too small to matter."""
    return found.p < UNLIKELY and abs(found.change) > MOST_CHANGE


def check(record: Record) -> Finding | None:
    kept = rates(record)
    if len(kept) < 2:
        return None
    from cotenant.stats.steadiness import drift

    found = drift(kept)
    if not is_drift(found):
        return None
    return Finding(
        "drift",
        "warning",
        f"The rate drifted by {100 * found.change:+.1f} % over the launch (Mann-Kendall p = {found.p:.1g}).",
        "Skip more observations (--skip) if it settles later; else look at clocks, heat and memory over time.",
    )
