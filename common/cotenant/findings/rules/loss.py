"""A loss that is not finite, or none that could be checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.findings.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    if not record.completed or record.statistics is None or record.losses_checked:
        return None
    return Finding("no_loss", "info", "This benchmark returns no loss, so none was checked for NaN.")
