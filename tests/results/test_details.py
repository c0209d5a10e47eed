"""Details: what can be drawn of a record, each part checked by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cotenant.errors import CotenantError
from cotenant.finding import Finding
from cotenant.results.detail import Detail, detail_of
from cotenant.results.meters import Meter
from cotenant.results.read import Skipped, read_details
from cotenant.results.record import encode
from cotenant.results.store import write_record
from results.made import NOON, a_lost_record, a_part, a_record, observed

POWER = {"n": 4, "min": 200.0, "mean": 250.0, "max": 300.0}


def fields_of(**changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.json.decode(encode(a_record()))
    return fields | changes


def only(details: Iterator[Detail | Skipped]) -> Detail:
    (found,) = details
    assert isinstance(found, Detail)
    return found


def test_our_own_record_keeps_what_can_be_drawn(tmp_path: Path) -> None:
    finding = Finding("power_cap", "warning", "Low.", "Raise it.")
    device = {"index": 3, "power_w": POWER, "slowed_samples": None, "foreign_processes": [], "hidden_processes": 0}
    record = a_record(common={"findings": (finding,), "meters": {"devices": {"GPU-3": device}}})
    write_record(tmp_path, record, NOON)
    found = only(read_details([tmp_path]))
    assert found.statistics == record.statistics
    assert found.rendezvous == record.rendezvous
    assert finding in found.findings
    assert found.meters == (Meter("power_w", "3", 4, 200.0, 250.0, 300.0),)
    assert list(found.spans.start_ns) == [one.start_ns for one in record.observations]
    assert found.spans.kept.sum() == len(record.observations) - record.skip
    assert record.statistics is not None
    assert float(np.median(found.spans.rates)) == pytest.approx(record.statistics.median)


def test_a_lost_record_has_nothing_to_draw(tmp_path: Path) -> None:
    write_record(tmp_path, a_lost_record("timeout", "Too slow."), NOON)
    found = only(read_details([tmp_path]))
    assert (found.statistics, found.rendezvous, len(found.spans.kept)) == (None, None, 0)


def test_impossible_observations_are_not_drawn_and_the_others_keep_their_places() -> None:
    rows = observed([10.0] * 8)
    rows[1] = msgspec.structs.replace(rows[1], items=None)
    rows[6] = msgspec.structs.replace(rows[6], end_ns=rows[6].start_ns)
    found = detail_of(fields_of(observations=msgspec.to_builtins(rows), skip=5), "x.json")
    assert len(found.spans.kept) == 6
    assert found.spans.kept.sum() == 2


@pytest.mark.parametrize(
    "device",
    [
        {"power_w": POWER},
        {"index": 0, "power_w": {**POWER, "mean": None}},
        {"index": 0, "power_w": {**POWER, "max": 1e300}},
        {"index": 0, "power_w": {**POWER, "mean": 1.0}},
        {"index": 0, "power_w": {**POWER, "n": 0}},
        {"index": 0, "power_w": [1, 2]},
        "power",
    ],
    ids=["no index", "no mean", "absurd", "mean below min", "no samples", "no spread", "no object"],
)
def test_a_meter_that_makes_no_sense_is_left_out(device: Any) -> None:
    assert detail_of(fields_of(meters={"devices": {"GPU-0": device}}), "x.json").meters == ()


def test_a_scaling_cell_is_known_by_what_ran() -> None:
    part = a_part(
        arguments={"arch": "resnet50", "batch_size": 32, "data": "/data", "parallel": "ddp"},
        observed={"world_size": 4, "device": "cuda:0", "dtype": "fp32"},
    )
    cell = detail_of(msgspec.json.decode(encode(a_record(told={"part": part}))), "x.json").cell
    assert (cell.model, cell.nodes, cell.world_size, cell.batch_size_per_device) == ("resnet50", 1, 4, 32)
    assert (cell.parallelism, cell.input) == ("ddp", "files")


def test_files_are_read_one_by_one(tmp_path: Path) -> None:
    write_record(tmp_path, a_record(), NOON)
    details = read_details([tmp_path])
    (tmp_path / "z.json").write_text("{")
    assert isinstance(next(details), Detail)
    assert [type(one) for one in details] == [Skipped]


def test_a_place_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CotenantError, match="There is no"):
        next(read_details([tmp_path / "absent"]))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
PARTS = ("observations", "statistics", "rendezvous", "findings", "meters", "machine", "observed", "skip", "end_time")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.dictionaries(st.sampled_from(PARTS), json_values))
def test_any_part_may_be_anything(fields: dict[str, Any]) -> None:
    text = json.dumps(fields_of() | fields)
    found = detail_of(json.loads(text), "x.json")
    assert found.row.name == "vae"
    assert found.spans.kept.shape == found.spans.items.shape


@pytest.mark.parametrize("rate", [1e308, 5e-324, 2.0**63])
def test_a_rate_that_no_machine_has_is_none(rate: float) -> None:
    statistics = fields_of()["statistics"] | {"median": rate}
    found = detail_of(fields_of(statistics=statistics), "x.json")
    assert (found.row.rate, found.row.rate_mean, found.statistics) == (None, None, None)


def test_text_that_no_file_can_hold_costs_its_part_only() -> None:
    finding = {"rule": "x", "severity": "\ud800", "sentence": "x"}
    found = detail_of(fields_of(findings=[finding]), "x.json")
    assert found.findings == ()
    assert found.row.rate is not None


@pytest.mark.parametrize("compute", [None, [], {"tflops": None}, {"tflops": -1.0, "mfu": 0}, {"tflops": True}])
def test_operations_that_make_no_sense_are_not_known(compute: Any) -> None:
    row = detail_of(fields_of(meters={"compute": compute}), "x.json").row
    assert (row.tflops, row.mfu) == (None, None)


def test_operations_are_those_of_a_tenant_that_completed() -> None:
    compute = {"compute": {"tflops": 1.5, "mfu": 0.25}}
    row, lost = (detail_of(fields_of(meters=compute), path).row for path in ("x.json", "x.FAIL.json"))
    assert (row.tflops, row.mfu) == (1.5, 0.25)
    assert (lost.tflops, lost.mfu) == (None, None)
