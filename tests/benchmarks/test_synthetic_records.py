"""Readers can read the synthetic records of benchmarks/records.py."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from benchmarks.conftest import Load
from cotenant.results.columns import COLUMNS
from cotenant.results.read import read_records


def test_a_row_has_every_column(load: Load) -> None:
    records = load("records")
    for one in islice(records.tenants(2000), 0, None, 97):
        assert list(records.row(one)) == [column.name for column in COLUMNS]


def test_files_and_lines_are_read_alike(load: Load, tmp_path: Path) -> None:
    records = load("records")
    records.write_files(tmp_path / "files", 200)
    records.write_lines(tmp_path / "rows.jsonl", 200)
    files, lines = (read_records([tmp_path / name]) for name in ("files", "rows.jsonl"))
    assert files.skipped == lines.skipped == ()
    told = ["name", "run_id", "tenant", "hostname", "rate_items_s", "outcome", "invalid", "suite_start_time"]
    keys = ["suite", "hostname", "name", "run_id", "tenant"]
    assert files.frame.sort(keys).select(told).equals(lines.frame.sort(keys).select(told))
