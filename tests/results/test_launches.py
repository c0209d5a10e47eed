"""The launches of a directory that count, and the sentences on the others."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from msgspec.structs import replace

from cotenant.finding import Finding
from cotenant.results.launches import distinguishing_values, launches_in, launches_of
from cotenant.results.newest import newest_in, newest_work
from cotenant.results.record import Record
from cotenant.results.table import AT
from results.made import ISOLATION, NOON, a_lost_record, a_record, with_device
from results.tabled import frame_of, launch


def began(uid: int, days: float) -> list[Record]:
    return launch(uid=uid, day=uid, suite_started=NOON + timedelta(days=days))


@pytest.mark.parametrize(("days", "said"), [((0, 3, 7), ""), ((0, 6, 7.5), "0"), ((0, 1, 30), "0, 1")])
def test_repetitions_of_long_ago_are_named(days: tuple[float, ...], said: str) -> None:
    details = [one for uid, day in enumerate(days) for one in began(uid, day)]
    newest, sentences = newest_in(frame_of(details))
    assert newest.height == 6
    day = f"{NOON + timedelta(days=days[-1]):%Y-%m-%d}"
    told = f"baselines, repetition {said}: more than 7 days before the newest, which began {day}."
    assert sentences == ([told] if said else [])


def test_hosts_are_launches_of_their_own() -> None:
    found, left_out = launches_of(frame_of([*launch(), *launch(hostname="node2", day=1)]))
    assert [one.host for one in found["vae"]] == ["node1", "node2"]
    assert left_out == []


@pytest.mark.parametrize("order", [1, -1])
def test_the_newest_records_of_a_repeated_repetition_count(order: int) -> None:
    newest, sentences = newest_in(frame_of([*launch(day=0), *launch(day=1)][::order]))
    assert set(newest["start_time"].str.slice(0, 10)) == {f"{NOON + timedelta(days=1):%Y-%m-%d}"}
    assert sentences == ["vae, repetition 0: there are records of several runs; the newest count."]


def test_users_only_in_an_older_run_do_not_count() -> None:
    newest, sentences = newest_in(frame_of([*launch(day=0), *launch(day=1)[:1]]))
    assert newest["tenant"].to_list() == [0]
    assert newest["start_time"][0].startswith(f"{NOON + timedelta(days=1):%Y-%m-%d}")
    assert sentences == ["vae, repetition 0: there are records of several runs; the newest count."]


def test_a_copy_under_another_number_does_not_count() -> None:
    """Launches of one host that begin at the same microsecond are one launch."""
    copy = [replace(one, run_id=3) for one in launch()]
    newest, sentences = newest_in(frame_of([*launch(), *copy, *launch(uid=1, day=1)]))
    assert sorted(newest["run_id"]) == [0, 0, 1, 1]
    said = "vae, repetition 3: it began at the same moment as repetition 0, and is a copy of it; it does not count."
    assert sentences == [said]


def on(*devices: str, uid: int = 0, **place: Any) -> list[Record]:
    """A launch a day, whose tenants run on these devices."""
    records, common = [], {"started": NOON + timedelta(days=uid)}
    for tenant, device in enumerate(devices):
        of_tenant = {"tenant": tenant, "vcd": str(tenant), "run_id": uid, "devices": 0}
        part = {"arguments": {"batch_size": 1}, "item": "image", "version": "1", "gpu": device}
        records.append(a_record(of_tenant | place, {"part": part}, common))
    return records


def lost_on(device: str, uid: int) -> Record:
    """The record of a second tenant that failed, in a slice with this device."""
    place = {"tenant": 1, "vcd": "1", "run_id": uid} | with_device(device)
    return a_lost_record("failed", "x", place | {"devices": 0})


def check_all_kept(frame: pl.DataFrame) -> None:
    """Assert that all rows are of one work."""
    kept, sentences = newest_work(frame)
    assert kept.equals(frame)
    assert sentences == []


def test_the_device_of_a_launch_is_all_of_its_models() -> None:
    for devices, model in (
        (("V100", "V100"), "V100"),
        (("V100", "H100"), "H100 + V100"),
        (("V100", ""), "Some Processor + V100"),
    ):
        frame = frame_of(on(*devices))
        (only,) = launches_of(frame)[0]["vae"]
        assert dict(only.work)["device"] == model
        check_all_kept(frame)


def test_cards_that_were_replaced_are_other_work() -> None:
    """The newest launch lost a tenant, whose record names its device as the slice does."""
    lost = lost_on("TU102", uid=2)
    old, mixed = on("V100", "V100"), on("V100", "RTX", uid=1)
    kept, (said,) = newest_work(frame_of([*old, *mixed]))
    assert kept["gpu"].to_list() == ["V100", "RTX"]
    assert said == "vae: 2 records are of other work than the newest (device V100, not RTX + V100); they do not count."
    kept, (said,) = newest_work(frame_of([*old, *on("RTX", "RTX", uid=1), *on("RTX", uid=2), lost]))
    assert kept["gpu"].to_list() == ["RTX", "RTX", "RTX", "TU102"]
    assert "(device V100, not RTX)" in said


def test_a_lost_tenant_of_another_device_excludes_no_launch() -> None:
    check_all_kept(frame_of([*on("V100", "H100"), *on("V100", uid=1), lost_on("H100", uid=1)]))


def test_hosts_of_another_device_than_the_newest_have_no_rate() -> None:
    here, other, same = on("MI50"), on("V100", uid=1, hostname="node2"), on("V100", hostname="node3")
    kept, (said,) = newest_work(frame_of([*here, *other, *same]))
    assert kept["hostname"].to_list() == ["node2", "node3"]
    assert said == "vae: 1 records are of other work than the newest (device MI50, not V100); they do not count."


def test_hosts_that_did_other_work_than_the_newest_have_no_rate() -> None:
    """Hosts may differ in tenants, isolation and torch within one work; another batch size is another work."""
    here = launch(hostname="node1", isolation=replace(ISOLATION, backend="none"))
    alike, other = launch(hostname="node2", day=1), launch(hostname="node3")
    frame = frame_of([*here, *alike])
    check_all_kept(frame)
    larger = frame_of(other).with_columns(batch_size=pl.col("batch_size") * 2)
    lost = frame_of([a_lost_record("failed", "x", {"hostname": "node3", "run_id": 4})])
    kept, (said,) = newest_work(pl.concat([frame, larger, lost]))
    assert kept["hostname"].to_list() == ["node1", "node1", "node2", "node2", "node3"]
    assert kept["completed"].to_list() == [True] * 4 + [False]
    assert said.startswith("vae: 2 records are of other work than the newest (batch size ")


def test_losses_that_are_not_finite_leave_no_rate() -> None:
    """The original's records say `completed` despite such losses."""
    frame = frame_of([*launch(), *launch(uid=1, day=1)])
    lost = pl.col("run_id") == 1
    newest = frame.with_columns(losses_non_finite=lost.cast(pl.Int64), batch_size=pl.col("batch_size") + lost)
    kept, said = newest_work(newest)
    assert (kept.height, said) == (4, [])
    tenant = pl.when(pl.col("tenant") == 1).then(3).otherwise(0).cast(pl.Int64)
    found, left_out = launches_of(frame_of(launch()).with_columns(losses_non_finite=tenant))
    assert found["vae"] == []
    assert left_out == ["vae, repetition 0: user 1 has 3 losses that are not finite."]


def test_of_users_that_share_a_device_the_lost_one_is_named() -> None:
    lost = a_lost_record("timeout", "sentence", {"tenant": 1, "vcd": "0"})
    _, left_out = launches_of(frame_of([a_record(place={"tenant": 0, "vcd": "0"}), lost]))
    assert left_out == ["vae, repetition 0: user 1 timeout."]


def test_different_works_are_distinguished_by_short_hashes() -> None:
    works = [(("benchmark", each * 64), ("work_of_an_item", each * 64), ("batch_size", 8)) for each in "ab"]
    assert distinguishing_values(works[0], works) == f"benchmark {'a' * 12}, work of an item {'a' * 12}"


def test_an_invalid_launch_names_only_its_errors() -> None:
    found = [Finding("drift", "warning", "It drifted.", ""), Finding("overlap", "error", "It was late.", "")]
    _, left_out = launches_of(frame_of([replace(one, findings=found) for one in launch()]))
    assert left_out == ["vae, repetition 0: user 0 is INVALID (overlap)."]


def test_launches_with_another_isolation_are_other_work() -> None:
    places = [{"isolation": replace(ISOLATION, backend=backend)} for backend in ("none", "v2")]
    frame = frame_of([one for uid, place in enumerate(places) for one in launch(uid=uid, day=uid, **place)])
    kept, (said,) = newest_work(frame)
    assert kept["isolation"].to_list() == ["v2", "v2"]
    assert "(isolation none, not v2)" in said


def test_a_table_in_pieces_says_what_a_whole_one_says() -> None:
    """Rows of a large file come in pieces, and a filter may leave some of them empty."""
    lost = [a_lost_record(outcome, "sentence", {"run_id": 1}) for outcome in ("failed", "aborted")]
    pieces = [frame_of(details) for details in (launch(), lost, launch(uid=2))]
    for order in itertools.permutations(pieces):
        table = pl.concat(order, rechunk=False).with_row_index(AT)
        found = launches_in(table)
        assert found == launches_in(table.rechunk())
        assert [one.flaw for one in found if one.run_id == 1] == ["user 0 failed."]


def test_a_launch_of_which_a_user_has_no_record_has_no_rate() -> None:
    found, left_out = launches_of(frame_of(launch()[:1]))
    assert found == {"vae": []}
    assert left_out == ["vae, repetition 0: 1 of 2 users have a record."]
