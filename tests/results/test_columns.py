"""Columns: each is declared once, and everything else follows from its declaration."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands.calling import Capture, call
from cotenant.finding import Finding
from cotenant.results import columns
from cotenant.results.as_read import ReadRecord
from cotenant.results.columns import COLUMNS, field_of_column, whole
from cotenant.results.legacy import LegacyRecord
from cotenant.results.read import read_records
from cotenant.results.record import encode_record
from cotenant.results.record_files import record_in
from cotenant.results.skipped import ForeignError
from results.made import a_part, a_record
from results.tabled import fields_of, frame_of, launch, row_of, rows_of


@pytest.fixture
def other_columns(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Let a test change the columns, of which those that must be equal are remembered."""
    columns.equal_columns.cache_clear()
    yield monkeypatch
    columns.equal_columns.cache_clear()


def test_a_column_more_is_one_line(tmp_path: Path, other_columns: pytest.MonkeyPatch, capsys: Capture) -> None:
    """The new column is read, exported, read again, documented, and has to be equal where rates are compared."""
    line = whole("threads", "threads that the benchmark computed with", "observed.threads", equal=True)
    other_columns.setattr(columns, "COLUMNS", (*COLUMNS, line))
    for side, threads in (("a", 4), ("b", 8)):
        (tmp_path / side).mkdir()
        for uid in range(5):
            fields = fields_of(run_id=uid, tenants=1, observed={"threads": threads}, start_time=f"2026-01-0{uid + 1}")
            (tmp_path / side / f"{uid}.json").write_text(json.dumps(fields | {"hostname": side}))
    assert read_records([tmp_path / "a"]).frame["threads"].to_list() == [4] * 5
    for form in ("parquet", "jsonl", "csv"):
        out = tmp_path / f"b.{form}"
        assert call(capsys, "export", tmp_path / "b", "--out", out)[0] == 0
        if form != "csv":
            assert read_records([out]).frame["threads"].to_list() == [8] * 5
    assert "threads" in pl.read_csv(tmp_path / "b.csv").columns
    assert "threads: threads that the benchmark computed with" in call(capsys, "help", "records", "threads")[1]
    compare = ("compare", tmp_path / "a", tmp_path / "b.jsonl")
    assert "different threads: 4 and 8 (--allow threads)" in call(capsys, *compare)[1]
    assert "SAME" in call(capsys, *compare, "--allow", "threads")[1]


def test_a_record_in_memory_is_the_row_that_is_read_of_its_file(tmp_path: Path) -> None:
    records = [a_record(common={"findings": (Finding("power_cap", "warning", "Low.", "Raise it."),)}), *launch()]
    for number, record in enumerate(records):
        (tmp_path / f"{number}.json").write_bytes(encode_record(record))
    frame = read_records([tmp_path]).frame
    made = frame_of(records)
    apart = ["path", "in_file"]
    assert made.drop(apart).equals(frame.drop(apart))
    assert made["findings"][0] == made["warning_findings"][0] == "power_cap"


def test_a_scaling_cell_is_known_by_what_ran() -> None:
    part = a_part(
        arguments={"arch": "resnet50", "batch_size": 32, "data": "/data", "parallel": "ddp"},
        observed={"world_size": 4, "device": "cuda:0", "dtype": "fp32"},
    )
    (row,) = rows_of([a_record(told={"part": part})])
    names = ("model", "nodes", "world_size", "batch_size_per_device", "parallelism", "input")
    assert [row[name] for name in names] == ["resnet50", 1, 4, 32, "ddp", "files"]


@pytest.mark.parametrize(
    ("part", "changes", "said"),
    [
        ("statistics", {"median": 1e308}, "Expected `float` < 9.223372036854776e+18 - at `$.statistics.median`"),
        ("statistics", {"median": 5e-324}, "Expected `float` > 1.0842021724855044e-19 - at `$.statistics.median`"),
        ("statistics", {"interval": [1.0, 1e300]}, "at `$.statistics.interval[1]`"),
        ("statistics", {"interval": "wide"}, "Expected `array | null`, got `str` - at `$.statistics.interval`"),
        ("rendezvous", {"overlap": 1.5}, "Expected `float` <= 1.0 - at `$.rendezvous.overlap`"),
        ("isolation", {"backend": None}, "Expected `str`, got `null` - at `$.isolation.backend`"),
    ],
)
def test_a_record_with_an_impossible_value_is_malformed(part: str, changes: dict[str, Any], said: str) -> None:
    fields = fields_of()
    with pytest.raises(ForeignError) as refused:
        row_of(fields | {part: fields[part] | changes})
    assert str(refused.value).startswith("it is malformed: ")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"observations": [{"start_ns": 0, "end_ns": 10**400}]}, "at `$.observations[0].end_ns`"),
        ({"run_id": 2**63}, "Expected `int` <= 9223372036854775807 - at `$.run_id`"),
        ({"schema": "cotenant-record-9"}, "Invalid enum value 'cotenant-record-9' - at `$.schema`"),
        ({"outcome": "failed"}, "`completed` is True, and `outcome` failed"),
        ({"findings": [{"severity": "error"}]}, "Object missing required field `rule` - at `$.findings[0]`"),
    ],
)
def test_a_record_with_a_malformed_field_is_named_by_it(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ForeignError, match=re.escape(said)):
        row_of(fields_of(**changes))


def test_a_value_of_another_kind_in_an_open_mapping_is_unknown() -> None:
    """Any program may have filled it; the record stays."""
    for value in (None, [], "abc", {"a": 1}, 1e300, 10**400, True):
        row = row_of(
            fields_of(batch_size=value, observed={"rows": value, "items_per_row": value}, meters={"steps": value})
        )
        assert (row["batch_size"], row["rows"], row["items_per_row"], row["steps"]) == (None,) * 4, value
        assert row["rate_items_s"] == fields_of()["statistics"]["median"]
    spread = fields_of()["statistics"] | {"robust_spread": -1.0}
    assert row_of(fields_of(statistics=spread))["robust_spread"] is None


def test_every_column_is_declared_by_the_records_types() -> None:
    kinds = {column.name: (column.kind, place) for column in COLUMNS if (place := field_of_column(column)) is not None}
    assert len(kinds) > 60
    assert {name for name, (kind, place) in kinds.items() if place.kind not in (kind, Any)} == set()
    computed = {column.name for column in COLUMNS} - kinds.keys()
    assert all(column.of or hasattr(ReadRecord, column.name) for column in COLUMNS if column.name in computed)
    old = record_in({"name": "vae", "outcome": "completed"}, "x.json")
    assert isinstance(old, LegacyRecord)
    assert old.values.keys() - {column.name for column in COLUMNS} == set()
    for path in ("statistics.medium", "suites", "statistics.interval.2", "suite.name", "kept.value.x"):
        with pytest.raises((AttributeError, IndexError)):
            field_of_column(whole("x", "x", path))


def test_a_rate_with_losses_that_are_none_is_not_clean() -> None:
    """The original's records say `completed` despite such losses; no mean has their rates."""
    old = {"name": "vae", "train_item": {"avg": 5.0}, "batch_loss": [None, 0.5]}
    row = row_of(old)
    assert (row["completed"], row["losses_non_finite"], row["trust"]) == (True, 1, "invalid")
    assert row_of(old | {"batch_loss": [0.5]})["trust"] == "clean"


def test_text_that_no_file_can_hold_is_escaped(tmp_path: Path) -> None:
    fields = fields_of(gpu="\udcff", arch="\ud800", findings=[{"rule": "x", "severity": "info", "sentence": "\ud800"}])
    path = tmp_path / os.fsdecode(b"\xe9.json")
    path.write_text(json.dumps(fields))
    found = read_records([path])
    row = found.frame.row(0, named=True)
    assert row["rate_items_s"] is not None
    texts = (row["gpu"], row["path"], row["model"], found.table.findings["sentence"][0])
    assert texts == ("\\udcff", f"{tmp_path}/\\udce9.json", "\\ud800", "\\ud800")


def test_operations_are_those_of_a_tenant_that_completed() -> None:
    compute: dict[str, Any] = {"compute": {"tflops": 1.5, "mfu": 0.25}}
    row = row_of(fields_of(meters=compute))
    lost = row_of(fields_of(meters=compute, completed=False, outcome="failed"))
    assert (row["tflops"], row["mfu"]) == (1.5, 0.25)
    assert (lost["tflops"], lost["mfu"], lost["rate_items_s"], lost["rate_max_items_s"]) == (None,) * 4
    for foreign in (None, [], {"tflops": None}, {"tflops": -1.0, "mfu": 0}, {"tflops": True}):
        row = row_of(fields_of(meters={"compute": foreign}))
        assert (row["tflops"], row["mfu"]) == (None, None)


def test_kernels_are_optimizers_and_tried_convolutions() -> None:
    fused = {"name": "FusedAdam", "package": "apex", "fused": True}
    plain = {"name": "SGD", "package": "torch", "fused": False}
    on_device = {"optimizers": [plain], "device": "cuda:0"}
    for observed, tuned, kernels in (
        (
            on_device | {"optimizers": [plain, fused, plain]},
            True,
            "apex.FusedAdam fused, torch.SGD, convolutions tried",
        ),
        (on_device | {"device": "cpu"}, True, "torch.SGD"),
        (on_device, False, "torch.SGD"),
        (on_device | {"memory_format": "channels_last"}, True, "torch.SGD, convolutions tried, channels_last"),
        ({"optimizers": "odd"}, None, ""),
    ):
        part = a_part(observed=observed, torch={"version": "2.14.1", "cudnn_benchmark": tuned})
        assert frame_of([a_record(told={"part": part})])["kernels"].to_list() == [kernels]
