"""Reads the newest launch of each cell, to estimate the time of a suite before it runs again."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cotenant.decoding import Whole
from cotenant.results.decoded import list_of, mapping_of, part_of
from cotenant.results.record import IN_MIX, SOLO, Record, why_no_blocks
from cotenant.results.record_files import own_records
from cotenant.results.store import TIME, safe_part


@dataclass(frozen=True, slots=True)
class LastLaunch:
    """A completed launch: its `seconds` from begin to the last tenant's end, the number of its optimizers' weights, and
    the peak memory of its slice, page cache included.

    `parameters` is None if nothing is trained, or the program is no benchmark of ours. `memory_peak_bytes` is None if
    the slice does not count it.
    """

    start: str
    seconds: float
    parameters: int | None
    memory_peak_bytes: int | None = None
    by_blocks: bool = False
    """True if it was planned by blocks, which takes longer."""


def last_launches(records: Iterable[Record], suite: str) -> dict[str, LastLaunch]:
    """Return the newest launch of each cell of a suite, by its label; a solo launch has its own label."""
    newest: dict[str, LastLaunch] = {}
    for record in records:
        if record.suite != suite or not record.completed:
            continue
        try:
            lasted = datetime.fromisoformat(record.end_time) - datetime.fromisoformat(record.start_time)
        except (ValueError, TypeError):  # TypeError: only one time has a zone
            continue
        peak_bytes = part_of(record.isolation.counters.get("memory_peak_bytes"), Whole)
        by_blocks = record.blocks is not None or why_no_blocks(record.findings) is not None
        launch = LastLaunch(record.start_time, lasted.total_seconds(), _parameters(record), peak_bytes, by_blocks)
        before = newest.get(record.name, launch)
        newest[record.name] = max(before, launch, key=lambda entry: (entry.start, entry.seconds))
    return newest


def last_peaks(output: Path, suite: str, before: datetime | None) -> dict[str, int]:
    """Return the peak memory in bytes of a tenant of each cell in the newest launches there, by the cell's label.

    With `before`, only launches that ended by then count.
    """
    peaks: dict[str, int] = {}
    for name, launch in last_in(output, suite, before).items():
        label = name.partition(IN_MIX)[0].removesuffix(SOLO)
        if launch.memory_peak_bytes is not None:
            peaks[label] = max(peaks.get(label, 0), launch.memory_peak_bytes)
    return peaks


def last_in(output: Path, suite: str, before: datetime | None = None) -> dict[str, LastLaunch]:
    """Return the newest launch of each label with records in a directory.

    It reads one file per label: a suite that is about to start cannot wait until all files are read.
    """
    newest: dict[str, tuple[str, Path]] = {}
    end = "" if before is None else before.strftime(TIME)
    for path in output.glob(f"{glob.escape(safe_part(suite))}.*.R*.json"):
        label, time = path.name.rpartition(".R")[0], path.name.split(".")[-2]
        if ".FAIL." not in path.name and (not end or time < end):
            newest[label] = max(newest.get(label, ("", path)), (time, path))
    records = (record for _, path in newest.values() for record in own_records(path) if record is not None)
    return last_launches(records, suite)


def _parameters(record: Record) -> int | None:
    optimizers = list_of(record.observed.get("optimizers"))
    counts = part_of([mapping_of(optimizer).get("parameters") for optimizer in optimizers], list[Whole])
    return sum(counts) if counts else None
