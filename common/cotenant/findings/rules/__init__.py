"""The rules a finished record is asked by, one small file a rule: `check(record)` returns a finding or None."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding
from cotenant.findings.rules import (
    above_peak,
    batch_rows,
    budget,
    clocks,
    credited,
    data_bound,
    device_in_use,
    devices_unused,
    drift,
    few,
    foreign_load,
    impossible,
    input_stall,
    loaded_ahead,
    loss,
    memory_kills,
    meters_absent,
    mfu,
    neighbour,
    not_enforced,
    outliers,
    overlap,
    pace,
    page_cache,
    precision,
    runner,
    scaling,
    seed,
    shared_memory_kept,
    skipped_updates,
    slow_start,
    stolen,
    swapped,
    throttled,
    unsynchronised,
    until_interval,
    untimed,
)

if TYPE_CHECKING:
    from cotenant.results.record import Record

RULES = (
    neighbour,
    overlap,
    impossible,
    precision,
    mfu,
    above_peak,
    credited,
    skipped_updates,
    batch_rows,
    pace,
    untimed,
    seed,
    clocks,
    few,
    slow_start,
    drift,
    outliers,
    input_stall,
    loaded_ahead,
    data_bound,
    loss,
    not_enforced,
    unsynchronised,
    runner,
    shared_memory_kept,
    page_cache,
    swapped,
    stolen,
    throttled,
    memory_kills,
    foreign_load,
    device_in_use,
    devices_unused,
    scaling,
    budget,
    until_interval,
    meters_absent,
)


def findings_of(record: Record) -> list[Finding]:
    """Return what every rule has to say about `record`."""
    return [finding for rule in RULES if (finding := rule.check(record)) is not None]
