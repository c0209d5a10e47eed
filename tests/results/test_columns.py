"""Columns: each is declared once, and everything else follows from its declaration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands.calling import Capture, call
from cotenant.finding import Finding
from cotenant.results import columns
from cotenant.results.columns import COLUMNS, whole
from cotenant.results.read import read_records
from cotenant.results.record import encode
from results.made import a_part, a_record
from results.tabled import fields_of, frame_of, launch, row_of, rows_of


def test_a_column_more_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """The new column is read, exported, read again, documented, and has to be equal where rates are compared."""
    line = whole("threads", "threads that the benchmark computed with", "observed.threads", equal=True)
    monkeypatch.setattr(columns, "COLUMNS", (*COLUMNS, line))
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
        (tmp_path / f"{number}.json").write_bytes(encode(record))
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


def test_a_rate_that_no_machine_has_is_none() -> None:
    for rate in (1e308, 5e-324, 2.0**63):
        row = row_of(fields_of(statistics=fields_of()["statistics"] | {"median": rate}))
        assert (row["rate_items_s"], row["rate_mean_items_s"], row["interval_low_items_s"]) == (None, None, None)
    assert row_of(fields_of(observations=[{"start_ns": 0, "end_ns": 10**400}]))["observed_s"] is None


def test_statistics_that_cannot_be_cost_themselves_only() -> None:
    statistics = fields_of()["statistics"]
    low, high = statistics["interval"]
    whole = {"interval_low_items_s": low, "interval_high_items_s": high, "robust_spread": statistics["robust_spread"]}
    for changes, values in (
        ({}, {}),
        ({"interval": [1.0, 1e300]}, {"interval_low_items_s": 1.0, "interval_high_items_s": None}),
        ({"interval": "wide"}, {"interval_low_items_s": None, "interval_high_items_s": None}),
        ({"robust_spread": -1.0}, {"robust_spread": None}),
    ):
        row = row_of(fields_of(statistics=statistics | changes))
        assert row["rate_items_s"] == statistics["median"]
        assert {name: row[name] for name in whole} == whole | values, changes


def test_a_rate_with_losses_that_are_none_is_not_clean() -> None:
    """The original's records say `completed` despite such losses; no mean has their rates."""
    old = {"name": "vae", "train_item": {"avg": 5.0}, "batch_loss": [None, 0.5]}
    row = row_of(old)
    assert (row["completed"], row["losses_non_finite"], row["trust"]) == (True, 1, "invalid")
    assert row_of(old | {"batch_loss": [0.5]})["trust"] == "clean"


def test_text_that_no_file_can_hold_costs_its_part_only() -> None:
    findings = [{"rule": "x", "severity": "\ud800", "sentence": "x"}, {"severity": "error"}]
    row = row_of(fields_of(findings=findings, gpu="\udcff"), "/\udce9")
    assert (row["findings"], row["error_findings"], row["invalid"]) == ("x,unnamed", "unnamed", True)
    assert row["rate_items_s"] is not None
    assert (row["gpu"], row["path"]) == ("\\udcff", "/\\udce9")


def test_operations_are_those_of_a_tenant_that_completed() -> None:
    compute: dict[str, Any] = {"compute": {"tflops": 1.5, "mfu": 0.25}}
    row, lost = (row_of(fields_of(meters=compute), path) for path in ("x.json", "x.FAIL.json"))
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
