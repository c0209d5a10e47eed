"""The parts of a record that pictures draw, each checked by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.meters.sampler import TimeSeries as Kept
from cotenant.results.drawn import (
    Course,
    MeterSpread,
    courses_of,
    own_meters,
    setting_of,
    spans_of,
    version_differences,
)
from cotenant.results.read import again, read_drawn, read_records
from cotenant.results.record import Record, record_of
from cotenant.results.store import write_record
from cotenant.results.table import Rows
from results.made import NOON, a_lost_record, a_record, observed
from results.tabled import fields_of, record_with, row_of

POWER = {"n": 4, "min": 200.0, "mean": 250.0, "max": 300.0}
LOAD = {"n": 4, "min": 20.0, "mean": 50.0, "max": 90.0}
S = 1_000_000_000
FOREIGN: list[Any] = [[], [1.0], [1, 2, 3, 4], ["a", "b", "c"], [-1, -2, -3], [1e300] * 3, [None] * 3, "abc", 7, None]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def all_of(place: Path) -> Rows:
    return Rows.all(read_records([place]).table)


def test_drawn_data_is_read_again_from_the_record_file(tmp_path: Path) -> None:
    device = {"index": 3, "power_w": POWER, "slowed_samples": None, "foreign_processes": [], "hidden_processes": 0}
    record = a_record(place={"vcd": "3"}, common={"meters": {"devices": {"GPU-3": device}}})
    write_record(tmp_path, record, NOON)
    write_record(tmp_path, a_lost_record("timeout", "Too slow.", {"tenant": 1, "vcd": "4"}), NOON)
    whole, lost = read_drawn(all_of(tmp_path))
    assert whole.meeting == record.rendezvous
    assert whole.meters == [MeterSpread("power_w", "3", 4, 200.0, 250.0, 300.0)]
    assert list(whole.spans.start_ns) == [observation.start_ns for observation in record.observations]
    assert whole.spans.kept.sum() == len(record.observations) - record.skip
    assert float(np.median(whole.spans.rates)) == pytest.approx(record.statistics.median)
    assert (lost.meeting, len(lost.spans.kept), lost.meters) == (None, 0, [])


def test_each_of_several_records_in_a_file_is_found_again(tmp_path: Path) -> None:
    path, gone = tmp_path / "a.json", tmp_path / "b.json"
    records = [fields_of(tenant=tenant, machine={"model_name": f"host{tenant}"}) for tenant in range(3)]
    path.write_text("[" + ",".join(map(json.dumps, [records[0], {"a": 1}, *records[1:]])) + ",")
    gone.write_text(json.dumps(records[0]))
    rows = all_of(tmp_path)
    gone.unlink()
    found = [(row["tenant"], record.machine["model_name"]) for row, record in again(rows)]
    assert found == [(0, "host0"), (1, "host1"), (2, "host2")]
    path.write_text("{}")
    assert list(again(rows)) == []


def test_impossible_observations_are_not_drawn() -> None:
    rows = observed([10.0] * 8)
    rows[1] = msgspec.structs.replace(rows[1], items=None)
    rows[6] = msgspec.structs.replace(rows[6], end_ns=rows[6].start_ns)
    found = spans_of(record_with(observations=msgspec.to_builtins(rows), skip=5))
    assert len(found.kept) == 6
    assert found.kept.sum() == 2


def test_meters_that_make_no_sense_are_left_out() -> None:
    devices: list[Any] = [
        {"power_w": POWER},
        {"index": 0, "power_w": {**POWER, "mean": None}},
        {"index": 0, "power_w": {**POWER, "max": 1e300}},
        {"index": 0, "power_w": {**POWER, "min": -1.0}},
        {"index": 0, "power_w": {**POWER, "n": 0}},
        {"index": 0, "power_w": [1, 2]},
        "power",
    ]
    for device in devices:
        assert own_meters(record_with(vcd="0", meters={"devices": {"GPU-0": device}})) == [], device
    one = {"index": 0, "power_w": {"n": 1, "min": 250.0, "mean": 250.0, "max": 250.0}}
    (meter,) = own_meters(record_with(vcd="0", meters={"devices": {"GPU-0": one}}))
    assert (meter.n, meter.mean) == (1, 250.0), "one sample is a spread"


def test_the_load_of_a_tenant_is_that_of_its_own_devices() -> None:
    devices = {f"GPU-{i}": {"index": i, "load_percent": LOAD | {"mean": 30.0 + 10 * i}} for i in range(3)}
    fields = fields_of(vcd="0,2", meters={"devices": devices})
    assert [meter.of for meter in own_meters(record_of(fields))] == ["0", "2"]
    assert [row_of(of)["device_load_percent"] for of in (fields, fields_of())] == [40, None]


@pytest.mark.parametrize(
    ("joules", "device", "watts"),
    [
        ([300.0, 900.0, 600.0], "cuda:0", 90.0),
        ([300.0, None, 600.0], "cuda:0", 90.0),
        ([300.0, 900.0, None], "cuda:0", None),
        ([300.0, 900.0, -5.0], "cuda:0", None),
        ([300.0, 900.0, 600.0], "cpu", None),
        ([], "cuda:0", None),
    ],
)
def test_a_tenant_has_the_power_of_all_its_devices_or_none(joules: list[Any], device: str, watts: float | None) -> None:
    counters = [{"index": index, "energy_j": of, "energy_window_s": 10.0} for index, of in enumerate(joules)]
    devices = {f"GPU-{counter['index']}": counter for counter in counters}
    fields = fields_of(vcd="0,2", meters={"devices": devices}, observed={"device": device})
    assert row_of(fields)["device_power_w"] == watts


@given(
    st.dictionaries(
        st.sampled_from(("observations", "rendezvous", "meters", "machine", "observed", "skip")), json_values
    )
)
def test_any_part_may_be_anything_or_is_named(changes: dict[str, Any]) -> None:
    fields = json.loads(json.dumps(fields_of() | changes))
    refused = ""
    try:
        record = record_of(fields)
    except msgspec.ValidationError as error:
        refused = str(error)
    if refused:
        assert any(f"`$.{name}" in refused for name in changes)
        return
    row, spans = row_of(fields), spans_of(record)
    assert row["name"] == "vae"
    assert spans.kept.shape == spans.items.shape
    assert (record.rendezvous is None) == (row["overlap"] is None)
    assert all(isinstance(value, str) and value for value in setting_of({"git": fields["machine"]}).values())


def sampled(**changes: Any) -> Record:
    """A record with three samples of two devices, two slices and the host."""
    kept = Kept()
    for second in (1, 2, 3):
        device = {("devices", f"GPU-{n}", "power_w"): 100.0 * n + second for n in range(2)}
        slices = {("tenants", str(n), "memory_used_bytes"): n + second for n in range(2)}
        kept.add(second * S, device | slices | {("host", "available_bytes"): 9})
    series = kept.result(0) | changes
    devices = {"GPU-0": {"index": 4}, "GPU-1": {"index": 5}}
    return record_with(meters=json.loads(json.dumps({"series": series, "devices": devices})))


def by_name(found: list[Course]) -> dict[tuple[str, str, str], list[float]]:
    return {(one.kind, one.of, one.quantity): list(one.values) for one in found}


def test_what_meters_kept_is_read_back() -> None:
    read = courses_of(sampled())
    assert by_name(read) == {
        ("device", "4", "power_w"): [1, 2, 3],
        ("device", "5", "power_w"): [101, 102, 103],
        ("tenant", "0", "memory_used_bytes"): [1, 2, 3],
        ("tenant", "1", "memory_used_bytes"): [2, 3, 4],
        ("host", "host", "available_bytes"): [9, 9, 9],
    }
    assert all(list(course.at_s) == [1, 2, 3] for course in read)
    of_one_time = courses_of(sampled(at_s=[1, 1, 2]))
    assert by_name(of_one_time)["device", "5", "power_w"] == [102, 103]
    assert all(list(course.at_s) == [1, 2] for course in of_one_time)


def test_a_damaged_series_is_dropped_without_the_others() -> None:
    read = courses_of(sampled(host={"available_bytes": [1, None, 2]}))
    (host,) = [course for course in read if course.kind == "host"]
    assert np.isnan(host.values).tolist() == [False, True, False]
    for values in FOREIGN:
        read = courses_of(sampled(host={"available_bytes": values}))
        assert {course.kind for course in read} == {"device", "tenant"}, values
    for times in [*FOREIGN[:4], *FOREIGN[5:], [2, 1, 3], [3, 2, 1], [1, None, 2]]:
        assert courses_of(sampled(at_s=times)) == [], times
    record = sampled()
    del record.meters["devices"]["GPU-1"]
    assert {course.of for course in courses_of(record) if course.kind == "device"} == {"4"}


def test_the_versions_of_a_machine() -> None:
    machine = {
        "software": {"kernel": "6.1", "python": "3.11.2", "packages": {"torch": "2.14.1", "numpy": "2.4"}},
        "git": {"commit": "0123456789abcdef", "dirty": True},
        "accelerators": [{"driver": "550"}, {"driver": "550"}],
        "torch": {"version": "2.14.1+cu130", "cuda": "13.0", "hip": None},
    }
    before = setting_of(machine)
    assert before == {
        "torch": "2.14.1+cu130",
        "numpy": "2.4",
        "python": "3.11.2",
        "kernel": "6.1",
        "driver": "550",
        "CUDA": "13.0",
        "git": "0123456789ab and changes",
    }
    assert version_differences(before, before | {"kernel": "6.2", "ROCm": "7"}) == ["kernel 6.1 -> 6.2"]
