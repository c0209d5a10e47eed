"""From records to the launches that a history keeps."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.results.detail import Detail, detail_of
from cotenant.results.entry import Entry, entries_of, entry_of, line_of
from cotenant.results.record import Record, encode
from cotenant.results.setting import differences, setting_of
from results.made import ISOLATION, NOON, a_lost_record, a_record


def detail(record: Record) -> Detail:
    return detail_of(msgspec.json.decode(encode(record)), "x.json")


def launch(name: str = "vae", uid: int = 0, tenants: int = 2, day: int = 0, **place: Any) -> list[Detail]:
    return [
        detail(
            a_record(
                place={"name": name, "run_id": uid, "tenant": tenant, "vcd": str(tenant), "tenants": 2} | place,
                common={"started": NOON + timedelta(days=day)},
            )
        )
        for tenant in range(tenants)
    ]


def test_a_launch_is_one_entry_with_the_rate_of_the_node() -> None:
    members = launch()
    (found,), unkept = entries_of(members)
    assert unkept == []
    assert found.rate == pytest.approx(sum(one.row.rate or 0 for one in members))
    assert (found.job, found.host, found.device, found.unit) == ("vae", "node1", "Some Processor", "example")
    assert found.start == NOON
    assert found.work.tenants == 2


def test_the_same_number_on_another_day_is_another_launch() -> None:
    found, _ = entries_of([*launch(day=1), *launch(day=0), *launch(day=0, hostname="node2")])
    assert len({one.identity for one in found}) == 3
    assert [one.start for one in found] == sorted(one.start for one in found)


def test_a_copy_of_a_launch_under_another_number_is_no_launch() -> None:
    found, unkept = entries_of([*launch(uid=2), *launch(uid=5), *launch(uid=6, day=1)])
    assert [one.run_id for one in found] == [2, 6]
    assert {one.launch for one in unkept} == {"vae, repetition 5"}
    assert "is a copy of it" in unkept[0].reason


def test_a_line_says_the_device_once() -> None:
    policies = msgspec.structs.replace(ISOLATION, policies={"cache": "drop"})
    ((found,), _) = entries_of(launch(isolation=policies))
    assert (found.device, found.work.device, found.work.cache) == ("Some Processor", "", "drop")
    assert b'"cache":"drop"' in line_of(found)
    assert entry_of(line_of(found)) == found


def test_a_launch_on_two_devices_says_both() -> None:
    models = ((a_record(), "V100"), (a_record(place={"tenant": 1, "vcd": "1"}), "A100"))
    both = [detail(msgspec.structs.replace(record, gpu=model)) for record, model in models]
    (found,), _ = entries_of(both)
    assert found.device == "A100 + V100"


def test_what_has_no_rate_says_what_became_of_it() -> None:
    lost = [
        detail(a_lost_record(outcome, "It ended.", {"tenant": tenant, "vcd": str(tenant), "name": "wlm"}))
        for tenant, outcome in enumerate(("aborted", "out_of_memory"))
    ]
    invalid = [detail(a_record(place={"name": "ssd", "tenants": 1}, common={"load": (0, 1)}))]
    found, unkept = entries_of([*lost, *invalid])
    assert unkept == []
    assert {one.job: (one.outcome, one.rate) for one in found} == {
        "wlm": ("out_of_memory", None),
        "ssd": ("INVALID", None),
    }


def test_a_launch_that_still_runs_is_not_kept_yet() -> None:
    found, (unkept,) = entries_of(launch(tenants=1))
    assert found == []
    assert (unkept.launch, unkept.reason) == ("vae, repetition 0", "1 of 2 tenants have a record.")


@pytest.mark.parametrize("start", ["", "yesterday", 7])
def test_a_launch_without_a_time_has_no_place(start: Any) -> None:
    fields = msgspec.json.decode(encode(a_record(place={"tenants": 1}))) | {"start_time": start}
    found, (unkept,) = entries_of([detail_of(fields, "x.json")])
    assert found == []
    assert "do not say when it started" in unkept.reason


def test_the_originals_tenants_each_have_a_start_of_their_own() -> None:
    fields = {"name": "vae", "uid": 0, "hostname": "node1", "train_item": {"avg": 5.0}}
    members = [
        detail_of(fields | {"vcd": vcd, "start_time": f"2021-01-01 00:00:0{vcd}"}, f"{vcd}.json") for vcd in (1, 0)
    ]
    (found,), _ = entries_of(members)
    assert (found.rate, found.start.isoformat()) == (10, "2021-01-01T00:00:00+00:00")


texts = st.text(st.sampled_from("a1:-.T\ud800\0é"), max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
KEYS = ("suite", "run_id", "hostname", "gpu", "group", "start_time", "batch_size", "tenants", "unit", "machine")


@given(st.dictionaries(st.sampled_from((*KEYS, "precision", "unique_id", "outcome", "vcd", "devices")), values))
def test_whatever_a_record_says_its_entry_is_read_as_it_was_written(changes: dict[str, Any]) -> None:
    fields = msgspec.json.decode(encode(a_record(place={"tenants": 1}))) | changes
    found, unkept = entries_of([detail_of(fields, "x.json")])
    assert len(found) + len(unkept) == 1
    for one in found:
        assert entry_of(line_of(one)) == one
        assert one.identity == entry_of(line_of(one)).identity


@given(values)
def test_a_setting_holds_texts_whatever_the_machine_is_said_to_be(machine: Any) -> None:
    keys = ("software", "git", "torch", "accelerators", "packages")
    found = setting_of(dict.fromkeys(keys, machine))
    assert all(isinstance(value, str) and value for value in found.values())


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
    assert differences(before, before | {"kernel": "6.2", "ROCm": "7"}) == ["kernel 6.1 -> 6.2"]


def test_an_entry_is_of_a_rate_or_of_a_failure(tmp_path: Path) -> None:
    (found,), _ = entries_of(launch())
    for changes in ({"rate": None}, {"outcome": "failed"}, {"rate": float("inf")}, {"rate": 0.0}):
        with pytest.raises(ValueError, match="a rate of"):
            msgspec.structs.replace(found, **changes)
    assert isinstance(found, Entry)
