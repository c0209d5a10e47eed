"""The history's file: any number of writers may append to it, and its whole lines stay readable after any damage."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import re
import resource
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commands.calling import refusal
from cotenant.errors import CotenantError
from cotenant.results.decoded import Decoded
from cotenant.results.history import HistoryEntry, add_to_history, entries_of, entry_of, read_history
from cotenant.results.record import encode
from cotenant.results.table import table_of, table_of_records
from results.made import ISOLATION, NOON, a_lost_record, a_record, refuse
from results.tabled import an_entry, launch

LINE = (
    b'{"schema":"cotenant-history-1","suite":"baselines","job":"vae","run_id":3,"host":"node1",'
    b'"start":"2026-03-14T12:00:03.123456Z","device":"Abacus","group":"student","unit":"image","outcome":"completed",'
    b'"rate":103.0,"work":{"benchmark":"abc","batch_size":128,"precision":"fp32","devices":1,"tenants":2,'
    b'"isolation":"v1","software":"2.14.1"},"setting":{"torch":"2.14.1"}}'
)


def entry(number: int = 0, **changes: object) -> HistoryEntry:
    own = {"run_id": number, "start": NOON + timedelta(seconds=number), "rate": 100.0 + number}
    return an_entry(**own | changes)


def numbers(path: Path) -> list[int]:
    return [one.run_id for one in read_history(path).entries]


def test_a_line_of_version_1_stays_readable() -> None:
    """Histories are kept for years: the line must not change with the code."""
    assert msgspec.json.encode(entry(3)) == LINE
    assert entry_of(LINE) == entry(3)


def test_what_is_no_entry_says_why_and_a_later_versions_key_is_no_damage() -> None:
    for old, new, sentence in (
        (b"history-1", b"history-2", "schema"),
        (b"103.0", b"0", "rate"),
        (b"103.0", b"1e999", "out of range"),
        (b"103.0", b"null", "completed with a rate of None"),
        (b'"completed"', b'"failed"', "failed with a rate of 103.0"),
        (b"123456Z", b"123456", "start"),
        (b'"job":"vae",', b"", "job"),
        (b'"vae"', b'"\xff"', "."),
        (b'"tenants":2', b'"tenants":[2]', "work"),
    ):
        with pytest.raises(ValueError, match=sentence):
            entry_of(LINE.replace(b'{"torch":"2.14.1"}}', b"{}}").replace(old, new))
    fields = msgspec.json.decode(LINE) | {"weather": "rain"}
    assert entry_of(msgspec.json.encode(fields)) == entry(3)


def test_a_launch_is_added_once(tmp_path: Path) -> None:
    path = tmp_path / "deep/history.jsonl"
    assert add_to_history(path, [entry(0), entry(1), entry(1)])[0] == 2
    assert add_to_history(path, [entry(1, rate=7.0), entry(2)])[0] == 1
    assert numbers(path) == [0, 1, 2]
    assert read_history(path).entries[1].rate == 101
    before = path.stat().st_mtime_ns
    assert add_to_history(path, [entry(2)])[0] == 0
    assert path.stat().st_mtime_ns == before
    assert path.read_bytes().count(b"\n") == 3
    same_moment = entry(2, start=entry(2).start.astimezone())
    assert add_to_history(path, [same_moment])[0] == 0


def test_a_torn_last_line_spoils_nothing_but_itself_and_one_that_lacks_its_end_counts(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    add_to_history(path, [entry(0), entry(1)])
    path.write_bytes(path.read_bytes()[:-40])
    torn = path.read_bytes()
    assert numbers(path) == [0]
    assert add_to_history(path, [entry(1), entry(2)])[0] == 2
    assert path.read_bytes().startswith(torn + b"\n"), "what was there is never changed"
    assert [damage.path for damage in read_history(path).damaged] == [f"{path}:2"]
    path.write_bytes(path.read_bytes().rstrip())
    assert add_to_history(path, [entry(2), entry(3)])[0] == 1
    assert numbers(path) == [0, 1, 2, 3]


@given(st.lists(st.one_of(st.binary(max_size=30), st.integers(0, 5)), max_size=12), st.integers(0, 60))
@example([b"[" * 30_000], 0)
@example([b'{"schema":' * 5000], 0)
def test_whatever_the_file_holds_what_is_whole_is_read(parts: list[bytes | int], cut: int) -> None:
    """The file has our lines among foreign bytes, and is cut off near its end; then two more lines are added."""
    ours = [part for part in parts if isinstance(part, int)]
    lines = [msgspec.json.encode(entry(part)) if isinstance(part, int) else part.replace(b"\n", b"") for part in parts]
    whole = b"".join(line + b"\n" for line in lines)
    content = whole[: max(0, len(whole) - cut)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "history.jsonl")
        path.write_bytes(content)
        history = read_history(path)
        found = [one.run_id for one in history.entries]
        # A line that lost only its newline is whole.
        survivors = [number for number in ours if msgspec.json.encode(entry(number)) in content]
        assert found == list(dict.fromkeys(survivors))
        assert len(found) + len(history.damaged) <= len(content.split(b"\n"))
        assert add_to_history(path, [entry(7), entry(8)])[0] == 2
        assert path.read_bytes().startswith(content)
        assert numbers(path) == [*found, 7, 8]


def _add_all(path: Path, first: int) -> None:
    for number in range(first, first + 40):
        add_to_history(path, [entry(number), entry(number + 1)])


def test_writers_at_the_same_time_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_add_all, args=(path, first)) for first in (0, 20, 40, 60)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert {writer.exitcode for writer in writers} == {0}
    assert sorted(numbers(path)) == list(range(101))
    assert read_history(path).damaged == []
    assert path.read_bytes().count(b"\n") == 101


def _add_to_a_full_disk(path: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        add_to_history(path, [entry(number) for number in range(1, 9)])
    except CotenantError as error:
        os._exit(7 if "cannot be written: File too large" in str(error) else 8)


def test_a_disk_that_fills_takes_back_what_was_begun(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    add_to_history(path, [entry(0)])
    before = path.read_bytes()
    writer = multiprocessing.get_context("fork").Process(target=_add_to_a_full_disk, args=(path,))
    writer.start()
    writer.join(30)
    assert writer.exitcode == 7
    assert path.read_bytes() == before


def test_places_that_are_no_history(tmp_path: Path) -> None:
    said = refusal(read_history, tmp_path / "absent")
    assert re.search(r"There is no history .*`./run.sh history add DIR` begins one", said)
    for said in (refusal(read_history, tmp_path), refusal(add_to_history, tmp_path, [entry()])):
        assert "cannot be opened: Is a directory" in said
    (tmp_path / "file").write_text("")
    assert "cannot be made" in refusal(add_to_history, tmp_path / "file/history.jsonl", [entry()])
    assert read_history(tmp_path / "file").entries == []


def test_a_history_that_cannot_be_locked_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lustre that is mounted without flock has no locks."""
    path = tmp_path / "history.jsonl"
    path.touch()
    refuse(monkeypatch, fcntl, "flock", errno.ENOSYS)
    for said in (refusal(read_history, path), refusal(add_to_history, path, [entry()])):
        assert "history.jsonl cannot be locked: Function not implemented." in said


def test_a_launch_is_one_entry_with_the_rate_of_the_node_and_its_device_once() -> None:
    place = msgspec.structs.replace(ISOLATION, backend="v2")
    members = launch(isolation=place)
    (made,), left_out = entries_of(table_of_records(members))
    assert left_out == []
    assert made.rate == pytest.approx(sum(member.statistics.median for member in members))
    assert (made.job, made.host, made.device, made.unit) == ("vae", "node1", "Some Processor", "example")
    assert (made.start, made.work["tenants"], made.work["isolation"]) == (NOON, 2, "v2")
    assert "device" not in made.work
    assert b'"isolation":"v2"' in msgspec.json.encode(made)
    assert entry_of(msgspec.json.encode(made)) == made
    for changes in ({"rate": None}, {"outcome": "failed"}):
        with pytest.raises(ValueError, match="a rate of"):
            msgspec.structs.replace(made, **changes)


def test_the_same_number_on_another_day_is_another_launch_and_a_copy_under_another_number_is_none() -> None:
    made, _ = entries_of(table_of_records([*launch(day=1), *launch(day=0), *launch(day=0, hostname="node2")]))
    assert len({each.identity for each in made}) == 3
    assert [each.start for each in made] == sorted(each.start for each in made)
    made, (left_out,) = entries_of(table_of_records([*launch(uid=2), *launch(uid=5), *launch(uid=6, day=1)]))
    assert [each.run_id for each in made] == [2, 6]
    assert left_out.startswith("vae, repetition 5: ")
    assert "is a copy of it" in left_out


def test_what_has_no_rate_says_what_became_of_it() -> None:
    lost = [
        a_lost_record(outcome, "It ended.", {"tenant": tenant, "vcd": str(tenant), "name": "wlm"})
        for tenant, outcome in enumerate(("aborted", "out_of_memory"))
    ]
    invalid = [a_record(place={"name": "ssd", "tenants": 1}, common={"load": (0, 1)})]
    found, unkept = entries_of(table_of_records([*lost, *invalid]))
    assert unkept == []
    outcomes = {one.job: (one.outcome, one.rate) for one in found}
    assert outcomes == {"wlm": ("out_of_memory", None), "ssd": ("INVALID", None)}


def test_a_launch_that_still_runs_or_has_no_time_is_not_kept() -> None:
    made, (left_out,) = entries_of(table_of_records(launch(tenants=1)))
    assert (made, left_out) == ([], "vae, repetition 0: 1 of 2 users have a record.")
    for start in ("", "yesterday", 7):
        fields = msgspec.json.decode(encode(a_record(place={"tenants": 1}))) | {"start_time": start}
        made, (left_out,) = entries_of(table_of([Decoded(fields, "x.json")]))
        assert made == []
        assert "do not say when it started" in left_out


def test_the_originals_tenants_each_have_a_start_of_their_own() -> None:
    fields = {"name": "vae", "uid": 0, "hostname": "node1", "train_item": {"avg": 5.0}}
    own = [{"vcd": vcd, "start_time": f"2021-01-01 00:00:0{vcd}"} for vcd in (1, 0)]
    (found,), _ = entries_of(table_of([Decoded(fields | each, f"{each['vcd']}.json") for each in own]))
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
    found, unkept = entries_of(table_of([Decoded(fields, "x.json")]))
    assert len(found) + len(unkept) == 1
    for one in found:
        assert entry_of(msgspec.json.encode(one)) == one
