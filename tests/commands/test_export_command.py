"""`cotenant export` as people call it, and reports of what it wrote."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from cotenant.cli import main
from cotenant.commands.report import OF_EXPORTS
from cotenant.results.store import write_record
from report.making import BUSY, UNSLICED, launch, lost, scaling, solo
from results.made import NOON


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    directory = tmp_path / "output"
    directory.mkdir()
    records = [one for uid in range(5) for name in ("vae", "cart") for one in launch(name, uid)]
    records += [*launch("wlm", 0, findings=(BUSY,)), *lost("ssd", 0), scaling(1), scaling(2)]
    for one in records:
        write_record(directory, one, datetime.fromisoformat(one.start_time))
    (directory / "half.json").write_text("{")
    return directory


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = main(list(map(str, words)))
    said = capsys.readouterr()
    return status, said.out, said.err


def exported(capsys: pytest.CaptureFixture[str], reports: Path, form: str = "parquet") -> Path:
    path = reports.parent / f"rows.{form}"
    assert run(capsys, "export", reports, "--out", path)[0] == 0
    return path


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_what_is_written_is_said_and_what_is_no_record_is_named(
    reports: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    path = reports.parent / "deep" / "rows"
    status, said, errors = run(capsys, "export", reports, "--to", form, "--out", path)
    assert (status, said) == (0, "")
    half, last = errors.splitlines()
    assert half == f"cotenant: {reports / 'half.json'}: it is not JSON, or cut off; skipped."
    assert last == f"cotenant: 26 rows in {path}; 1 file or part of one skipped."
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "jsonl": pl.read_ndjson}[form](path)
    assert sorted(read["name"].unique()) == ["cart", "scaling.c1", "scaling.c2", "ssd", "vae", "wlm"]


@pytest.mark.parametrize("words", [["--job", "nobody"], ["--name", "other"], ["--observations", "--job", "ssd"]])
def test_where_nothing_is_chosen_nothing_is_begun(
    reports: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """polars makes its file when it comes to it, which may be after ours was taken away."""
    monkeypatch.setattr("cotenant.results.exporting.WRITERS", {})
    status, _, errors = run(capsys, "export", reports, *words, "--out", reports.parent / "rows.parquet")
    assert status == 2
    assert errors.splitlines()[-1].startswith("cotenant: ")
    assert [path.name for path in reports.parent.iterdir()] == ["output"]


def test_what_is_named_twice_is_exported_once(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, again = exported(capsys, reports), reports.parent / "again.parquet"
    (one, *_) = reports.glob("*.vae.*.json")
    words = ["export", reports, one, path, path.parent / "output" / ".." / path.name, "--out", again]
    assert f"52 rows in {again}" in run(capsys, *words)[2]


def test_only_some_records(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = reports.parent / "some.jsonl"
    run(capsys, "export", reports, "--name", "baselines", "--job", "v*", "--job", "ssd", "--out", path)
    assert {json.loads(line)["name"] for line in path.read_text().splitlines()} == {"vae", "ssd"}
    status, _, errors = run(capsys, "export", reports, "--job", "nope", "--out", reports.parent / "none.csv")
    assert status == 2
    assert "is of that suite and job" in errors
    assert not (reports.parent / "none.csv").exists()


def test_observations(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = reports.parent / "observations.parquet"
    assert run(capsys, "export", reports, "--observations", "--job", "cart", "--out", path)[0] == 0
    assert pl.read_parquet(path).height == 10 * 25


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{out}", "--out", "{base}/rows"], "says no form. --to takes parquet, csv, jsonl."),
        (["{out}", "--out", "{base}/rows.txt"], "says no form."),
        (["{out}", "--to", "parquet", "--out", "{out}"], "is a directory."),
        (["{base}/absent", "--out", "{base}/x.csv"], "There is no"),
        (["{out}", "--to", "xml", "--out", "{base}/x"], "invalid choice: 'xml'"),
        (["{out}"], "--out"),
        (["{out}", "--observation", "--out", "{base}/x.csv"], "Did you mean '--observations'?"),
        (["{base}/empty", "--out", "{base}/x.csv"], "There is no record in"),
        (["{base}/empty", "--observations", "--out", "{base}/x.csv"], "There is no observation in"),
        (["{out}", "--out", "/proc/x.csv"], "written to /proc: No such file or directory. --out names another file."),
    ],
)
def test_wrong_usage_is_a_sentence(
    reports: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    (reports.parent / "empty").mkdir()
    given = [word.format(out=reports, base=reports.parent) for word in words]
    status, said, errors = run(capsys, "export", *given)
    assert (status, said) == (2, "")
    assert sentence in errors
    assert "Traceback" not in errors
    assert not (reports.parent / "x.csv").exists()


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_a_report_of_an_export_is_the_report_of_its_records(
    reports: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    path = exported(capsys, reports, form)
    for words in (
        ["--format", "csv"],
        ["--format", "md"],
        ["--table", "scaling", "--format", "csv"],
        ["--table", "throughput"],
        ["--format", "csv", "--job", "vae"],
    ):
        of_records, of_export = (run(capsys, "report", place, *words) for place in (reports, path))
        assert of_export[:2] == of_records[:2], words
        assert f"{path}: {OF_EXPORTS}" in of_export[2]
    said = json.loads(run(capsys, "report", reports, "--format", "json")[1])
    again = json.loads(run(capsys, "report", path, "--format", "json")[1])
    assert {**again, "findings": []} == {**said, "findings": []}
    counted = [(one["rule"], one["severity"], one["count"], one["jobs"]) for one in said["findings"]]
    for one in again["findings"]:
        assert (one["rule"], one["severity"], one["count"], one["jobs"]) in counted
        assert (one["sentence"], one["remedy"]) == ("", "")
    assert len(again["findings"]) == len({(one[0], one[1]) for one in counted})


def test_the_text_of_an_export_names_rules(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "report", exported(capsys, reports))[1]
    assert "warning: foreign_load  [2 records: wlm]" in said
    assert "ssd R0 tenant 1: out_of_memory: It needed more.  [1 more aborted with it]" in said


def test_a_page_of_an_export_has_no_pictures_of_observations(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = reports.parent / "page.html"
    assert run(capsys, "report", exported(capsys, reports), "--html", page)[0] == 0
    text = page.read_text()
    assert OF_EXPORTS in text
    assert "Newest launch" not in text
    assert "foreign_load" in text


def test_the_other_reports_take_exports(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = exported(capsys, reports)
    words = ["--name", "baselines", "--gpu-model", "V100"]
    of_records = run(capsys, "mlbench-report", "--reports", reports, *words)
    of_export = run(capsys, "mlbench-report", "--reports", path, *words)
    assert of_export[:2] == of_records[:2]
    others = reports.parent / "others"
    others.mkdir()
    for uid in range(5):
        for one in launch("vae", uid, started=NOON + timedelta(days=1 + uid)):
            write_record(others, one, datetime.fromisoformat(one.start_time))
    compared = run(capsys, "compare", reports, others)
    assert run(capsys, "compare", path, others)[:2] == compared[:2]
    assert " 5, 5 " in compared[1]


def test_formulas_are_text_in_a_spreadsheet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"name": "=HYPERLINK(1)", "outcome": "failed", "message": "a\nb"}))
    path = tmp_path / "x.csv"
    run(capsys, "export", tmp_path, "--out", path)
    assert pl.read_csv(path).select("name", "message").row(0) == ("'=HYPERLINK(1)", "a\nb")
    run(capsys, "export", tmp_path, "--out", tmp_path / "x.parquet")
    assert pl.read_parquet(tmp_path / "x.parquet")["name"].to_list() == ["=HYPERLINK(1)"]


@pytest.mark.parametrize("form", ["md", "csv", "json"])
def test_what_neighbours_cost_is_the_same_of_exported_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    directory = tmp_path / "records"
    directory.mkdir()
    for uid in range(5):
        loose = launch("vae", uid, mean_ms=600, place=UNSLICED)
        for one in (*launch("vae", uid), *solo("vae", uid), *loose, *launch("vae", uid, place={"name": "wlm"})):
            write_record(directory, one, datetime.fromisoformat(one.start_time))
    rows = exported(capsys, directory)
    of_both = [run(capsys, "report", place, "--table", "interference", "--format", form) for place in (directory, rows)]
    assert [status for status, _, _ in of_both] == [0, 0]
    assert "1.2" in of_both[0][1]
    assert of_both[0][1] == of_both[1][1]


def test_a_job_is_exported_with_its_launches_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "records"
    directory.mkdir()
    for one in (*launch("vae"), *solo("vae"), *launch("wlm")):
        write_record(directory, one, datetime.fromisoformat(one.start_time))
    path = tmp_path / "vae.jsonl"
    assert run(capsys, "export", directory, "--job", "vae", "--out", path)[0] == 0
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted((one["name"], one["solo"]) for one in kept) == [("vae", False)] * 2 + [("vae.solo", True)] * 2
