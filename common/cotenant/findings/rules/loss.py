"""A benchmark without a loss: its NaN check had nothing to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    if record.statistics is None or record.losses_checked:
        return None
    return Finding("no_loss", "info", "This benchmark returns no loss, so none was checked for NaN.")
