"""Reading: our records, both older formats, and a great deal of rubbish."""

from __future__ import annotations

import errno
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands.calling import Capture, call, refusal, vouched
from cotenant.results.journal import FILE
from cotenant.results.launches import launches_of
from cotenant.results.newest import newest_in
from cotenant.results.read import read_records
from cotenant.results.record_files import planned_jobs, records_in
from cotenant.results.skipped import EDITED, Skipped
from cotenant.results.store import write_record
from results.made import NOON, a_record

OLD: dict[str, Any] = {
    "name": "vae",
    "batch_size": 128,
    "number": 30,
    "repeat": 50,
    "vcd": "0",
    "gpu": "V100",
    "hostname": "node1",
    "train": {"avg": 0.5, "count": 45, "max": 0.6, "min": 0.4, "sd": 0.01, "unit": "s"},
    "train_item": {"avg": 7680.0, "max": 9600.0, "min": 6400.0, "range": 3200.0, "unit": "items/sec"},
    "batch_loss": [1.0, 0.5],
}


def rows_in(path: Path) -> list[dict[str, Any]]:
    """The rows of the records of one file."""
    return read_records([path]).frame.to_dicts()


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_record_that_was_edited_is_invalid_and_says_so(tmp_path: Path, capsys: Capture) -> None:
    """The rate of one launch was trebled; the journal beside it has the hash of the record as it was written."""
    times = [NOON + timedelta(minutes=uid) for uid in range(2)]
    records = [a_record({"run_id": uid, "tenants": 1}, common={"started": time}) for uid, time in enumerate(times)]
    paths = [write_record(tmp_path, record, time) for record, time in zip(records, times, strict=True)]
    vouched(tmp_path, paths)
    assert read_records([tmp_path]).frame["invalid"].to_list() == [False, False]
    fields = json.loads(paths[1].read_text())
    fields["statistics"]["median"] *= 3
    paths[1].write_text(json.dumps(fields))
    frame = read_records([tmp_path, tmp_path]).frame
    assert frame.select("trust", "error_findings").rows() == [("clean", ""), ("invalid", "edited")]
    sentence = "This record is not what its launch wrote: the journal beside it has another SHA-256."
    exported = tmp_path / "rows.csv"
    for words in (["report", tmp_path], ["compare", tmp_path, tmp_path], ["export", tmp_path, "--out", exported]):
        said = said_by(capsys, *words)
        assert f"{paths[1]}: {sentence}" in said, words
        assert "repetition 1: user 0 is INVALID (edited)" in said or words[0] == "export"
    assert pl.read_csv(exported)["trust"].to_list() == ["clean", "invalid"]
    assert f"{paths[1]}: {EDITED}; skipped." in said_by(capsys, *words, "--observations")
    assert pl.read_csv(exported)["path"].unique().to_list() == [str(paths[0])]
    (tmp_path / FILE).write_text("junk\n")
    assert "so no record is held against it; skipped." in said_by(capsys, "report", tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"statistics": {"median": 3 * 7680.0}}, "Its statistics.median is 23040, and "),
        ({"statistics": {"median": 1.01 * 7680.0}}, "Its statistics.median is 7756.8, and "),
        ({"train_item": {"avg": 1.0}}, "Its train_item.avg is 1, and "),
        ({"observations": []}, "This record has a rate, and its observations are missing, impossible, or overlap."),
        (
            {"kept": {"value": 0.99, "interval": None, "n": 3}},
            "Its kept.value is 0.99, and unknown by its own observations.",
        ),
        ("negative", "impossible, or overlap."),
        ("overlapping", "impossible, or overlap."),
    ],
)
def test_a_contradictory_record_without_a_journal_is_invalid(
    change: dict[str, Any] | str, said: str, tmp_path: Path, capsys: Capture
) -> None:
    path = write_record(tmp_path, a_record({"tenants": 1}), NOON)
    fields = json.loads(path.read_text())
    copied = "No journal vouches for 1 of 1 record: it stands beside records as cotenant.journal; copy both."
    assert said_by(capsys, "report", tmp_path).count(copied) == 1
    assert read_records([tmp_path]).frame["trust"].to_list() == ["clean"]
    if isinstance(change, dict):
        for name, value in change.items():
            fields[name] = (fields[name] or {}) | value if isinstance(value, dict) else value
    else:
        row, before = fields["observations"][9], fields["observations"][8]
        moved_ns = row["start_ns"] - before["start_ns"] if change == "overlapping" else 0
        row["start_ns"], row["end_ns"] = row["start_ns"] - moved_ns, row["end_ns"] - (moved_ns or 10**12)
    path.write_text(json.dumps(fields))
    exported = tmp_path / "rows.csv"
    for words in (["report", tmp_path], ["compare", tmp_path, tmp_path], ["export", tmp_path, "--out", exported]):
        heard = said_by(capsys, *words)
        assert said in heard, words
        assert copied in heard, words
    assert pl.read_csv(exported).select("trust", "error_findings").rows() == [("invalid", "contradicted")]


def said_by(capsys: Capture, *words: object) -> str:
    status, said, errors = call(capsys, *words)
    assert status == 0
    return said + errors


def test_the_older_formats_are_read(tmp_path: Path) -> None:
    expected = {"name": "vae", "run_id": 3, "rate_items_s": 7680.0, "rate_mean_items_s": 7680.0, "sd_s": 0.01}
    expected |= {"group": "student", "outcome": "completed", "completed": True, "ours": False}
    old = json.dumps(OLD)
    texts = {old: 1, f"[{old},": 1, json.dumps([OLD], indent=2): 1, f"{old}\n{old}\n": 2, "\ufeff" + old: 1}
    for text, count in texts.items():
        rows = rows_in(write(tmp_path / "baselines.vae.R3.D0.json", text))
        assert [{name: row[name] for name in expected} for row in rows] == [expected] * count


def test_input_and_comparability_of_the_original_are_columns(tmp_path: Path) -> None:
    for more, value in (({}, ""), ({"data": None}, "resident"), ({"data": "/data"}, "files")):
        (row,) = rows_in(write(tmp_path / "x.R0.D0.json", json.dumps(OLD | more)))
        assert (row["input"], row["comparable"]) == (value, True)
    (row,) = rows_in(write(tmp_path / "x.R0.D0.json", json.dumps(OLD | {"comparable": False})))
    assert row["comparable"] is False


def test_appended_records_without_a_number_are_repetitions(tmp_path: Path) -> None:
    """They are counted for each job and device; a number in the record, or else in the file's name, comes first."""
    jobs = [OLD, OLD | {"name": "ssd"}, OLD, OLD | {"uid": 7}, OLD | {"vcd": "1"}, OLD]
    text = "[" + ",".join(map(json.dumps, jobs)) + ","
    rows = rows_in(write(tmp_path / "D0.json", text))
    ids = [("vae", "0", 0), ("ssd", "0", 0), ("vae", "0", 1), ("vae", "0", 7), ("vae", "1", 0), ("vae", "0", 2)]
    assert [(row["name"], row["vcd"], row["run_id"]) for row in rows] == ids
    rows = rows_in(write(tmp_path / "x.R3.D0.json", text))
    assert [row["run_id"] for row in rows] == [3, 3, 3, 7, 3, 3]


def test_original_repetitions_are_numbered_across_directories(tmp_path: Path) -> None:
    """A directory's repetitions follow those of the directories before it, even if a device lacks some there."""
    for directory, devices in enumerate(({"0": 2, "1": 1}, {"0": 1, "1": 2})):
        for device, count in devices.items():
            text = "[" + f"{json.dumps(OLD | {'vcd': None})}," * count
            write(tmp_path / f"output{directory}" / f"baselines_{device}.json", text)
    rows = rows_in(tmp_path)
    assert [(row["vcd"], row["run_id"]) for row in rows] == [("0", 0), ("0", 1), ("1", 0), ("0", 2), ("1", 2), ("1", 3)]
    assert {row["suite"] for row in rows} == {"baselines"}


def test_times_of_the_original_are_in_one_order(tmp_path: Path) -> None:
    """As texts, `Thu` stands before `Wed`."""
    times = ("Wed Nov 20 23:00:00 2019", "Thu Nov 21 01:00:00 2019", "Fri Dec  6 00:00:00 2019")
    own = [{"run_id": 0, "start_time": time, "train_item": {"avg": 1.0 + at}} for at, time in enumerate(times)]
    table = read_records([write(tmp_path / "x.json", json.dumps([OLD | each for each in own]))]).frame
    assert table["start_time"].to_list() == ["2019-11-20T23:00:00", "2019-11-21T01:00:00", "2019-12-06T00:00:00"]
    assert newest_in(table)[0]["rate_items_s"].to_list() == [3.0]
    for time, start in (("20200102-030405", "2020-01-02T03:04:05"), ("20200230-996060", "")):
        (row,) = rows_in(write(tmp_path / f"s.vae.R0.D0.{time}-1.json", json.dumps(OLD)))
        assert row["start_time"] == start


def test_a_failure_of_the_original_is_a_record(tmp_path: Path) -> None:
    failure = {"completed": False, "suite": "s", "name": None, "run_id": "3", "vcd": "1"}
    names = {"s.vae.c2.R3.D1.FAIL.json": "vae.c2", "s.None.R3.D1.json": "(unnamed)", "x.json": "(unnamed)"}
    for file, name in names.items():
        (row,) = rows_in(write(tmp_path / file, json.dumps(failure)))
        known = {"name": name, "outcome": "failed", "run_id": 3, "vcd": "1", "ours": False, "rate_items_s": None}
        assert {column: row[column] for column in known} == known
    assert newest_in(read_records([tmp_path]).frame)[0].height == 3
    (row,) = rows_in(write(tmp_path / "rated" / "s.vae.R3.D0.FAIL.json", json.dumps(OLD)))
    assert (row["completed"], row["outcome"]) == (False, "failed"), "though it has a rate"
    (skipped,) = records_in([write(tmp_path / "y.json", '{"completed": false, "name": null}')])
    assert isinstance(skipped, Skipped)


def test_the_originals_id_is_no_identity_of_its_work(tmp_path: Path) -> None:
    """The id hashes the start time, too."""
    for uid in range(5):
        own = {"unique_id": f"{uid}", "run_id": uid, "start_time": f"{uid}"}
        write(tmp_path / f"{uid}.json", json.dumps(OLD | own))
    table = read_records([tmp_path]).frame
    assert set(table["unique_id"]) == set(table["work"]) == {""}
    launches, _ = launches_of(table)
    assert len({launch.work for launch in launches["vae"]}) == 1


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """A device may have no end, and a pipe waits for its writer."""
    os.mkfifo(tmp_path / "x.json")
    os.mkfifo(tmp_path / "s.R0.resolved")
    (tmp_path / "zero.parquet").symlink_to("/dev/zero")
    for place in ([tmp_path], [tmp_path / "x.json", Path("/dev/zero")]):
        found = read_records(place)
        assert (found.frame.height, {skipped.reason for skipped in found.skipped}) == (0, {"it is no regular file"})
        assert len(found.skipped) == 2
    assert planned_jobs(tmp_path) == set()


def test_a_run_number_in_a_file_name_has_at_most_64_bits(tmp_path: Path) -> None:
    for number, run_id in ((10**18, 10**18), (10**30, 0)):
        (row,) = rows_in(write(tmp_path / f"vae.R{number}.D0.json", json.dumps(OLD)))
        assert row["run_id"] == run_id
    for vcd in ("0,1", [0, 1]):
        (row,) = rows_in(write(tmp_path / "x.json", json.dumps(OLD | {"vcd": vcd})))
        assert (row["vcd"], row["group"]) == ("0,1", "all")


def test_records_before_the_damage_in_a_file_are_kept(tmp_path: Path) -> None:
    path, old = tmp_path / "x.json", json.dumps(OLD)
    for text, records, reason in (
        (f"[{old},{old},{old[:40]}", 2, "it is cut off or damaged after 2 records"),
        ("", 0, "it is empty"),
        ("\x00\x01", 0, "it is not JSON, or cut off"),
        ('{"name": "vae"}', 0, "it has neither `train_item` nor `outcome`"),
        ('{"train_item": {}}', 0, "it has no `name`"),
        ('"text"', 0, "it is no JSON object"),
        ("[" * 100_000, 0, "it is empty"),
        ('{"a":' * 100_000, 0, "it is not JSON, or cut off"),
        ("9" * 10_000, 0, "it holds a number that is none"),
    ):
        *before, skipped = records_in([write(path, text)])
        assert [record.values["name"] for record in before] == ["vae"] * records
        assert skipped == Skipped(str(path), reason)


def test_nan_and_infinite_rates_are_no_rates(tmp_path: Path) -> None:
    broken = OLD | {
        "train_item": {"avg": float("nan"), "max": float("inf"), "min": -1},
        "batch_loss": [float("nan"), 1],
    }
    (row,) = rows_in(write(tmp_path / "x.json", json.dumps(broken)))
    assert [row[f"rate_{of}items_s"] for of in ("", "max_", "min_")] == [None] * 3
    assert not row["completed"]
    assert row["losses_non_finite"] == 1


def test_a_tree_is_read_in_order_and_foreign_files_are_counted(tmp_path: Path) -> None:
    for uid in (1, 0):
        write(tmp_path / f"output{uid}" / f"s.vae.R{uid}.D0.json", json.dumps(OLD))
    write(tmp_path / "output0" / "s.R0.resolved.json", "[]")
    write(tmp_path / "output0" / ".half.json", "{")
    write(tmp_path / "output0" / "summary.txt", "x")
    write(tmp_path / "output1" / "foreign.json", '{"a": 1}')
    found = read_records([tmp_path])
    assert [row["run_id"] for row in found.frame.to_dicts()] == [0, 1]
    assert [Path(one.path).name for one in found.skipped] == ["foreign.json"]


def test_what_of_a_tree_is_not_looked_into_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, elsewhere, closed = (tmp_path / name for name in ("tree", "elsewhere", "tree/closed"))
    for place in (tree, elsewhere, closed):
        place.mkdir()
        write_record(place, a_record(), NOON)
    (tree / "output1").symlink_to(elsewhere)
    (tree / "gone.json").symlink_to(tmp_path / "nowhere.json")
    scandir = os.scandir

    def refusing(place: str) -> object:
        # The directory's mode would not do: root reads any directory.
        if place == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), place)
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refusing)
    found = read_records([tree])
    assert found.frame.height == 1
    assert [(Path(one.path).name, one.reason) for one in found.skipped] == [
        ("gone.json", "it is a link to a file that is not there"),
        ("output1", "symlink"),
        ("closed", "Permission denied"),
    ]
    assert str(found.skipped[1]) == f"{tree}/output1: symlink skipped; name it directly to read it."
    assert read_records([tree / "output1"]).frame.height == 1


def test_places_within_each_other_are_read_once(tmp_path: Path) -> None:
    inner = tmp_path / "output0"
    inner.mkdir()
    path = write_record(inner, a_record(), NOON)
    linked = tmp_path.parent / f"{tmp_path.name}-link"
    linked.symlink_to(inner)
    assert read_records([tmp_path, inner, path, linked, tmp_path]).frame.height == 1
    assert read_records([path, inner]).frame.height == 1


def test_files_are_read_lazily_and_a_missing_place_fails(tmp_path: Path) -> None:
    write_record(tmp_path, a_record(), NOON)
    parts = records_in([tmp_path])
    (tmp_path / "z.json").write_text("{")
    assert next(parts).record.name == "vae"
    assert [type(part) for part in parts] == [Skipped]
    assert "does not exist" in refusal(read_records, [tmp_path / "absent"])
