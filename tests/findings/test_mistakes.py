"""False numbers: each mistake is flagged, fails a strict suite where it has to, and is averaged nowhere."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cotenant.cli import main
from cotenant.results.record import Record
from cotenant.results.store import write_record
from report.making import jobs_in
from results.made import ARGUMENTS, NOON, a_part, a_record, observed, steady
from tenants.suites import Suites, job, script

HONEST = 5
T4 = {"dtype": "fp32", "device": "cuda", "flops_per_step": 2e11}


def a_launch(uid: int, **changes: Any) -> Record:
    """A repetition of the job, a minute after the one before."""
    started = NOON + timedelta(minutes=uid)
    place = {"run_id": uid, "tenants": 1} | changes.pop("place", {})
    told = {"observations": steady(uid)} | changes.pop("told", {})
    return a_record(place, told, {"started": started} | changes.pop("common", {}), **changes)


MISTAKES: dict[str, tuple[str, dict[str, Any]]] = {
    "fp32 under an fp16 flag": ("precision", {"part": a_part(arguments=ARGUMENTS | {"precision": "fp16"})}),
    "100 steps credited where 30 ran": (
        "credited",
        {"part": a_part(observed={"dtype": "fp32", "updates_credited": 100, "updates": 30})},
    ),
    "rows credited that were in no batch": (
        "batch_rows",
        {"part": a_part(observed={"dtype": "fp32", "item_is_row": True}), "observations": observed([500.0] * 25, 9e9)},
    ),
    "one observation": ("few_observations", {"observations": observed([500.0]), "skip": 0}),
    "more than the device's peak": (
        "mfu_impossible",
        {"part": a_part(gpu="Tesla T4", observed=T4), "observations": observed([500.0] * 25)},
    ),
    "no time at all": ("impossible_observation", {"observations": observed([0.0] * 25)}),
}


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """Five honest repetitions; those behind them are left for mistakes."""
    for uid in range(HONEST):
        write_record(tmp_path, a_launch(uid), NOON + timedelta(minutes=uid))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[str, str]:
    assert main(list(map(str, words))) == 0
    out, err = capsys.readouterr()
    return out, err


def rates(capsys: pytest.CaptureFixture[str], reports: Path) -> list[float]:
    """Return the rate of the job by every reader: report, compare (both sides), and mlbench-report by its CSV."""
    (line,) = jobs_in(json.loads(said(capsys, "report", reports, "--format", "json")[0]))
    compared = json.loads(said(capsys, "compare", reports, reports, "--format", "json")[0])["rows"][0]
    table = reports / "table.txt"
    said(capsys, "mlbench-report", "--reports", reports, "--csv", table)
    (row,) = [one.split(",") for one in table.read_text().splitlines() if one.startswith("vae,")]
    table.unlink()
    return [line["rate"], compared["a"], compared["b"], float(row[5])]


def test_mistakes_are_invalid_and_averaged_nowhere(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    honest = rates(capsys, reports)
    for uid, (name, (_, told)) in enumerate(MISTAKES.items(), HONEST):
        mistaken = a_launch(uid, told=told)
        assert mistaken.invalid, name
        write_record(reports, mistaken, NOON + timedelta(hours=uid))
    assert rates(capsys, reports) == honest
    reported = said(capsys, "report", reports)[0]
    compared = said(capsys, "compare", reports, reports)[1]
    scored = said(capsys, "mlbench-report", "--reports", reports)[0]
    assert f"{HONEST}/{HONEST + len(MISTAKES)} clean" in reported
    for uid, (rule, told) in enumerate(MISTAKES.values(), HONEST):
        errors = [one.rule for one in a_launch(uid, told=told).findings if one.severity == "error"]
        assert rule in errors
        assert f"repetition {uid}: user 0 is INVALID ({', '.join(errors)})" in reported
        assert f"repetition {uid}: user 0 is INVALID ({rule}" in compared
        assert f"INVALID: {rule}" in scored


def test_what_is_no_launch_of_its_own_is_averaged_nowhere(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A crash that somebody calls completed, a copy of a launch, and what an earlier launch of four tenants left."""
    honest = rates(capsys, reports)
    crashed = write_record(reports, a_launch(5), NOON + timedelta(hours=1))
    crashed.write_text(json.dumps(json.loads(crashed.read_text()) | {"outcome": "failed", "message": "It fell."}))
    write_record(reports, replace(a_launch(2), run_id=6), NOON + timedelta(hours=1))
    for tenant in range(1, 4):
        where = {"tenant": tenant, "tenants": 4, "vcd": str(tenant)}
        before = a_launch(0, place=where, common={"started": NOON - timedelta(hours=1)})
        write_record(reports, before, NOON - timedelta(hours=1))
    assert rates(capsys, reports) == honest
    reported = said(capsys, "report", reports)[0]
    skipped = f"{crashed}: it is malformed: `completed` is True, and `outcome` failed; skipped."
    assert "vae, repetition 0: there are records of several runs; the newest count." in reported
    sentence = "vae, repetition 6: it began at the same moment as repetition 2, and is a copy of it; it does not count."
    for reader in (["report"], ["compare", reports], ["mlbench-report", "--reports"]):
        words = " ".join(" ".join(said(capsys, *reader, reports)).split())
        assert sentence in words
        assert skipped in words


def test_what_a_newer_run_never_reached_is_said_to_be_old(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Yesterday's suite came to its end; today's, under the same number, was cut short after its first job."""
    for days, names in ((1, ("vae", "wlm", "cart")), (0, ("vae",))):
        began = NOON - timedelta(days=days)
        for minute, name in enumerate(names):
            started = began + timedelta(minutes=minute)
            place = {"name": name, "suite_started": began}
            write_record(tmp_path, a_launch(0, place=place, common={"started": started}), started)
    sentence = f"baselines, repetition 0: an earlier run than that of {NOON.isoformat()[:19]}Z launched cart, wlm."
    for reader in (["report"], ["compare", tmp_path], ["mlbench-report", "--reports"]):
        assert sentence in " ".join(" ".join(said(capsys, *reader, tmp_path)).split())


def test_two_configurations_under_one_name_are_not_merged(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    honest = rates(capsys, reports)[3]
    for uid in (8, 9):
        stale = a_launch(uid, told={"part": a_part(arguments=ARGUMENTS | {"batch_size": 64})})
        stale = replace(stale, start_time=(NOON - timedelta(days=9 + uid)).isoformat())
        write_record(reports, stale, NOON - timedelta(days=9 + uid))
    lines = jobs_in(json.loads(said(capsys, "report", reports, "--format", "json")[0]))
    names = [line["job"].partition(",")[0] for line in lines]
    assert sorted(names) == ["vae (batch size 128", "vae (batch size 64"]
    (compared,) = json.loads(said(capsys, "compare", reports, reports, "--format", "json")[0])["rows"]
    assert (compared["verdict"], compared["note"]) == (
        "INVALID",
        "A has launches of different batch size: 128 and 64; name a directory of one",
    )
    table = reports / "table.txt"
    err = said(capsys, "mlbench-report", "--reports", reports, "--csv", table)[1]
    (row,) = [one.split(",") for one in table.read_text().splitlines() if one.startswith("vae,")]
    assert float(row[5]) == honest
    assert (
        "vae: 2 records are of other work than the newest (batch size 64, not 128; benchmark); they do not count."
        in err
    )


def test_tenants_of_different_work_have_no_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for tenant, batch_size in enumerate((128, 64)):
        part = a_part(arguments=ARGUMENTS | {"batch_size": batch_size})
        where = {"tenant": tenant, "tenants": 2, "vcd": str(tenant)}
        write_record(tmp_path, a_launch(0, place=where, told={"part": part}), NOON)
    assert "its users did different work (batch size 128 and 64)" in said(capsys, "report", tmp_path)[0]


PLANTED = {
    "cast": ("precision", "--precision", "bf16"),
    "skips": ("credited",),
    "halves": ("credited",),
    "zeros": ("benchmark:constant_input",),
}
"""The error of each mistake (fp32 under a bf16 flag, steps that did not run, zeros as input), and its flags."""


@pytest.mark.slow
def test_tasks_with_and_without_mistakes_through_real_launches(
    loose: Suites, capsys: pytest.CaptureFixture[str]
) -> None:
    # One thread each: threads that wait for each other on a busy machine take minutes.
    alone = {"env": {"OMP_NUM_THREADS": "1"}}
    shared = ["--no-cuda", "--repeat", 9, "--number", 20]
    jobs = [job("mistakes.sh", *shared, name="none", **alone)]
    jobs += [job("mistakes.sh", *shared, "--mistake", one, *PLANTED[one][1:], name=one, **alone) for one in PLANTED]
    ended = loose.run(jobs, "--users", 1, "--strict", limit_s=500)
    assert ended.returncode == 1, ended.stderr
    errors = {
        record["name"]: [one["rule"] for one in record["findings"] if one["severity"] == "error"]
        for record in loose.records()
    }
    assert errors == {"none": [], **{one: [rule] for one, (rule, *_) in PLANTED.items()}}
    assert sum(line.endswith("INVALID") for line in ended.stdout.splitlines()) == len(PLANTED)
    counted = loose.records()[0]["observed"]
    assert (counted["updates"], counted["updates_credited"]) == (180, 180)
    assert said(capsys, "report", loose.output)[0].count("INVALID") >= len(PLANTED)


@pytest.mark.slow
def test_a_crash_that_a_script_swallowed_is_no_success(loose: Suites) -> None:
    """As in `python main.py; echo done`: exit status 0, and nothing was measured."""
    crash = script(loose.folder / "crash.sh", "python3 -c 'raise ValueError(\"an odd batch\")'", "exit 0")
    jobs = [{"name": "crash", "cmd": str(crash), "args": {}, "cgroup": "student"}]
    assert loose.run(jobs, "--users", 1).returncode == 1
    (record,) = loose.records()
    assert record["message"].startswith("It ended without joining the rendezvous, with exit status 0. Its log ends: ")
    assert record["message"].endswith("ValueError: an odd batch")


def test_unaudited_numbers_are_marked_in_every_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for uid in range(5):
        own = a_launch(uid, told={"part": a_part(audited=False)})
        write_record(tmp_path, own, NOON + timedelta(minutes=uid))
    page, rows = tmp_path / "page.html", tmp_path / "rows.csv"
    assert "clean unaudited" in " ".join(said(capsys, "report", tmp_path)[0].split())
    line = next(csv.DictReader(said(capsys, "report", tmp_path, "--format", "csv")[0].splitlines()))
    assert line["audited"] == "0"
    said(capsys, "report", tmp_path, "--html", page)
    assert "unaudited" in page.read_text()
    assert "A and B unaudited" in " ".join(said(capsys, "compare", tmp_path, tmp_path)[0].split())
    assert "Unaudited, a number by the program's own word alone: vae." in "".join(
        said(capsys, "mlbench-report", "--reports", tmp_path)
    )
    said(capsys, "export", tmp_path, "--out", rows)
    assert {line["audited"] for line in csv.DictReader(rows.read_text().splitlines())} == {"false"}
