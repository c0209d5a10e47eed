"""Updates that a gradient scaler skipped: the steps cost what they cost, and trained nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

USUAL_SHARE, MOST_SHARE = 0.01, 0.5
"""A scaler in its steady state doubles its scale every 2000 updates, and may lose the next one."""


def check(record: Record) -> Finding | None:
    skipped, of = (record.observed.get(name) for name in ("updates_skipped", "updates_scaled"))
    if record.statistics is None or not isinstance(skipped, int) or not isinstance(of, int) or of <= 0:
        return None
    if skipped <= USUAL_SHARE * of:
        return None
    return Finding(
        "skipped_updates",
        "error" if skipped > MOST_SHARE * of else "warning",
        f"{skipped} of {of} updates since the warm-up changed no weight: their fp16 gradients were not finite.",
        "Let the scale settle with more observations, or use --precision bf16.",
    )
