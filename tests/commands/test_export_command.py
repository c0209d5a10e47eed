"""`cotenant export` as people call it, and reports of the files that it wrote."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from commands.calling import Capture, call, check_refusals, write
from cotenant.api.loading import OF_EXPORTS
from report.making import BUSY, UNSLICED, launch, lost, scaling, solo
from results.made import NOON


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    records = [one for uid in range(5) for name in ("vae", "cart") for one in launch(name, uid)]
    records += [*launch("wlm", 0, findings=(BUSY,)), *lost("ssd", 0), scaling(1), scaling(2)]
    records += [*solo("wlm", 0), *launch("wlm", 0, mean_ms=600, place=UNSLICED)]
    directory = write(tmp_path / "output", records)
    (directory / "half.json").write_text("{")
    return directory


def exported(capsys: Capture, reports: Path, form: str = "parquet") -> Path:
    path = reports.parent / f"rows.{form}"
    status, _, errors = call(capsys, "export", reports, "--out", path)
    assert status == 0, errors
    return path


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_what_is_written_is_said_and_what_is_no_record_is_named(reports: Path, capsys: Capture, form: str) -> None:
    path = reports.parent / "deep" / "rows"
    status, said, errors = call(capsys, "export", reports, "--format", form, "--out", path)
    assert (status, said) == (0, "")
    half, last = errors.splitlines()
    assert half == f"cotenant: {reports / 'half.json'}: it is not JSON, or cut off; skipped."
    assert last == f"cotenant: 30 rows in {path}; 1 file or part of one skipped."
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "jsonl": pl.read_ndjson}[form](path)
    assert sorted(read["name"].unique()) == ["cart", "scaling.c1", "scaling.c2", "ssd", "vae", "wlm", "wlm.solo"]


@pytest.mark.parametrize("words", [["--job", "nobody"], ["--suite", "other"], ["--observations", "--job", "ssd"]])
def test_where_nothing_is_chosen_nothing_is_begun(
    reports: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """polars creates its file late, possibly after our own was removed."""
    monkeypatch.setattr("cotenant.results.exports.WRITERS", {})
    status, _, errors = call(capsys, "export", reports, *words, "--out", reports.parent / "rows.parquet")
    assert status == 2
    assert errors.endswith("is of that suite and job. `./run.sh report` lists them.\n")
    assert [path.name for path in reports.parent.iterdir()] == ["output"]


def test_what_holds_no_parquet_file_is_refused(reports: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device keeps no digest, polars words a full disk in its own way, and only root can write beside a device."""
    monkeypatch.setattr("cotenant.commands.export.prepare_directory", pytest.fail)
    for form, sentence in (("parquet", "/dev/full is no regular file"), ("csv", "Nothing can be written to /dev/full")):
        status, _, errors = call(capsys, "export", reports, "--format", form, "--out", "/dev/full")
        assert status == 2
        assert sentence in errors.splitlines()[-1]
        assert "--out names another file." in errors


def test_standard_input_is_read_by_a_dash_pictures_included(
    reports: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = b"".join(path.read_bytes() for path in sorted(reports.glob("*.R0.*.json")))
    page = tmp_path / "page.html"

    def given(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
        return call(capsys, *words)

    assert given("report", "-", "--html", page)[0] == 0
    assert "vae" in page.read_text()
    assert page.read_text().count("<svg") > 1
    assert given("export", "-", "--out", tmp_path / "rows.csv")[0] == 0
    assert given("mlbench-report", "--reports", "-", "--gpu-model", "V100")[0] == 0
    lines = exported(capsys, reports).read_bytes()
    assert "wlm" in given("report", "-")[1]
    lines = b""
    assert "There is no record in -." in given("report", "-")[2]
    monkeypatch.setattr("cotenant.commands.records.MOST_INPUT_BYTES", 8)
    lines = b"{}" * 8
    assert "Standard input holds more than" in given("report", "-")[2]


REFUSED = {
    "{out} --format parquet --out {out}": "is a directory.",
    "{out} --format xml --out {base}/x": "--format takes parquet, csv, jsonl, openmetrics, bmf, hud,",
    "{base}/empty --out {base}/x.csv": "There is no record in",
    "{base}/empty --observations --out {base}/x.csv": "There is no observation in",
    "{out} --out /proc/x.csv": "written to /proc: No such file or directory. --out names another file.",
}


def test_wrong_usage_is_a_sentence(reports: Path, capsys: Capture) -> None:
    (reports.parent / "empty").mkdir()
    (reports / "half.json").unlink()
    lines = {line.format(out=reports, base=reports.parent): sentence for line, sentence in REFUSED.items()}
    check_refusals(capsys, "export", lines)
    assert not (reports.parent / "x.csv").exists()


def test_a_report_of_an_export_is_the_report_of_its_records(reports: Path, capsys: Capture) -> None:
    lines, parquet = exports = [exported(capsys, reports, form) for form in ("jsonl", "parquet")]
    for words in (
        "--format csv",
        "--format md",
        "--table scaling --format csv",
        "--table throughput --job cart",
        "--table interference --format csv",
        "--format csv --job vae",
    ):
        of_records = call(capsys, "report", reports, *words.split())
        path = lines if "md" in words else parquet
        of_export = call(capsys, "report", path, *words.split())
        assert of_export[:2] == of_records[:2], (words, path)
        assert f"{path}: {OF_EXPORTS}" in of_export[2]
    said = json.loads(call(capsys, "report", reports, "--format", "json")[1])
    findings = said.pop("parts")["findings"]["rows"]
    counted = [(one["rule"], one["severity"], one["count"], one["jobs"]) for one in findings]
    for path in exports:
        again = json.loads(call(capsys, "report", path, "--format", "json")[1])
        findings = again.pop("parts")["findings"]["rows"]
        assert again == said, path
        for one in findings:
            assert (one["rule"], one["severity"], one["count"], one["jobs"]) in counted
            assert (one["sentence"], one["remedy"]) == ("", "")
        assert len(findings) == len({(one[0], one[1]) for one in counted})


def test_a_report_of_an_export_has_rules_but_no_observations(reports: Path, capsys: Capture) -> None:
    page = reports.parent / "page.html"
    status, said, _ = call(capsys, "report", exported(capsys, reports), "--html", page)
    text = page.read_text()
    assert (status, "Newest launch" in text, OF_EXPORTS in text, "foreign_load" in text) == (0, False, True, True)
    assert "warning: foreign_load  [2 records: wlm]" in said
    assert "ssd, repetition 0, user 1: out_of_memory: It needed more.  [1 more aborted with it]" in said


def test_the_other_reports_take_exports(reports: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whether a job did a reference target's work is read from its flags, which no export holds.
    monkeypatch.setattr("cotenant.commands.mlbench_report.REFERENCE", ())
    path = exported(capsys, reports)
    words = ["--name", "baselines", "--gpu-model", "V100"]
    of_records = call(capsys, "mlbench-report", "--reports", reports, *words)
    of_export = call(capsys, "mlbench-report", "--reports", path, *words)
    assert of_export[:2] == of_records[:2]
    later = [launch("vae", uid, started=NOON + timedelta(days=1 + uid)) for uid in range(5)]
    others = write(reports.parent / "others", [one for of_uid in later for one in of_uid])
    compared = call(capsys, "compare", reports, others)
    assert call(capsys, "compare", path, others)[:2] == compared[:2]
    assert " 5, 5 " in compared[1]


def test_a_job_is_exported_with_its_launches_alone(tmp_path: Path, capsys: Capture) -> None:
    directory = write(tmp_path / "records", [*launch("vae"), *solo("vae"), *launch("wlm")])
    path = tmp_path / "vae.jsonl"
    assert call(capsys, "export", directory, "--job", "vae", "--out", path)[0] == 0
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted((one["name"], one["solo"]) for one in kept) == [("vae", False)] * 2 + [("vae.solo", True)] * 2
