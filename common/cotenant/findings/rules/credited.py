"""Batches that were credited and did not train: the weights were updated less often than the loop went round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    expected, ran = (record.observed.get(name) for name in ("updates_credited", "updates"))
    if record.statistics is None or not isinstance(expected, int) or not isinstance(ran, int) or ran >= expected:
        return None
    return Finding(
        "credited",
        "error",
        f"{expected} updates of weights were credited, as many per batch as in the warm-up, and {ran} ran.",
        "Let every step do the same work, or count in `items` what it did.",
    )
