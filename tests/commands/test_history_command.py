"""`cotenant history` as a person uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.calling import Capture, call, check_refusals, write
from cotenant.results.store import write_record
from report.making import month
from results.made import NOON, a_lost_record, a_part, a_record


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return write(tmp_path / "records", month(tenants=2))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


def history(capsys: Capture, *words: object) -> tuple[int, str, str]:
    return call(capsys, "history", *words)


def test_add_and_show(capsys: Capture, records: Path, store: Path) -> None:
    status, said, errors = history(capsys, "add", records, "--store", store)
    assert (status, errors) == (0, "")
    assert said == f"20 launches added to {store}, 0 were there; 20 in all.\n"
    again = f"0 launches added to {store}, 20 were there; 20 in all.\n"
    assert history(capsys, "add", records, records, "--store", store) == (0, again, "")
    status, said, errors = history(capsys, "show", "--store", store)
    assert (status, errors) == (0, "")
    assert "vae: 2026-03-24 -9." in said
    assert "torch 2.14.0 -> 2.14.1" in said
    series = json.loads(history(capsys, "show", "--store", store, "--format", "json")[1])["series"]
    assert [one["n"] for one in series] == [20]


def test_jobs_and_devices_are_chosen(capsys: Capture, records: Path, store: Path) -> None:
    other = a_record(place={"name": "wlm", "tenants": 1}, told={"part": a_part(gpu="Tesla T4")})
    write_record(records, other, NOON)
    history(capsys, "add", records, "--store", store)
    for words, job in ((("--job", "w*"), "wlm"), (("--device", "Some*"), "vae"), (("--device", "Tesla*"), "wlm")):
        said = history(capsys, "show", "--store", store, *words, "--format", "csv")[1]
        assert [line.split(",")[1] for line in said.splitlines()] == ["job", job], words


def test_damage_is_named_and_counted(capsys: Capture, records: Path, store: Path) -> None:
    store.write_text("not JSON\n" * 7)
    status, said, errors = history(capsys, "add", records, "--store", store)
    assert status == 0
    assert "20 in all" in said
    assert f"{store}:1: " in errors
    assert "2 more of its lines are damaged; skipped." in errors
    assert history(capsys, "show", "--store", store)[0] == 0


def test_what_is_not_kept_is_said(capsys: Capture, tmp_path: Path, store: Path) -> None:
    write_record(tmp_path, a_lost_record("timeout", "Late."), NOON)
    (tmp_path / "foreign.json").write_text("{}")
    write_record(tmp_path, a_record(place={"name": "wlm"}), NOON)
    status, said, errors = history(capsys, "add", tmp_path, "--store", store)
    assert status == 0
    assert said.startswith("1 launches added")
    assert "wlm, repetition 0: 1 of 2 users have a record. Not added." in errors
    assert "foreign.json: it has no `name`; skipped." in errors
    assert "without a rate 1 timeout" in history(capsys, "show", "--store", store)[1]


REFUSED = {
    "show --job vea": "The history has no job 'vea'. Did you mean 'vae'?",
    "show --device H100": "The history has no device 'H100'. There are Some Processor.",
}


def test_wrong_usage(capsys: Capture, records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE", str(tmp_path))
    history(capsys, "add", records)
    assert (tmp_path / "history.jsonl").read_bytes().count(b"\n") == 20, "it lies in the base"
    check_refusals(capsys, "history", REFUSED)


def test_an_empty_history_is_shown_as_one(capsys: Capture, store: Path) -> None:
    store.touch()
    assert history(capsys, "show", "--store", store) == (0, "The history is empty.\n", "")
    assert history(capsys)[0] == 0
