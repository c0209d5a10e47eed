"""A benchmark without a runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch

from bench.small import Small
from cotenant.bench import MissingDataError, Run, UnsupportedError, session
from cotenant.results.schema import record_schema


def read(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    jsonschema.validate(record, record_schema())
    return record


def test_the_record_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "mine.json"
    assert session.main(Small, ["-b", "8", "--report", str(path), "--seed", "7"]) == 0
    record = read(path)
    assert (record["batch_size"], record["seed"], record["precision"]) == (8, 7, "fp32")
    assert (record["suite"], record["name"], record["outcome"], record["unit"]) == (
        "alone",
        "small",
        "completed",
        "row",
    )
    assert len(record["observations"]) == 6
    assert {one["items"] for one in record["observations"]} == {24}
    assert record["skip"] == 2
    assert record["train"]["count"] == 4
    assert record["train_item"]["avg"] == pytest.approx(24 / record["train"]["avg"])
    assert record["losses_checked"] == 18
    assert record["devices"] == 0
    assert record["observed"]["dtype"] == "fp32"
    assert record["isolation"]["backend"] == "none"
    assert record["batch_loss"][-1] < record["batch_loss"][0]
    shown = capsys.readouterr()
    assert json.loads(shown.out.split("-" * 80)[-2]) == record
    assert shown.err == f"Record: {path}\n"


def test_the_record_goes_into_a_directory(tmp_path: Path) -> None:
    assert session.main(Small, ["--report", str(tmp_path / "output")]) == 0
    (path,) = (tmp_path / "output").glob("*.json")
    assert path.name.startswith("alone.small.R0.D0.2")
    assert read(path)["completed"] is True


def test_nothing_is_written_without_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert session.main(Small, ["--repeat", "1"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_an_impossible_report_is_told_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert session.main(Small, ["--report", str(tmp_path / "file" / "below")]) == 2
    shown = capsys.readouterr()
    assert "Nothing can be written to" in shown.err
    assert "Traceback" not in shown.err
    assert "ETA" not in shown.out


def test_going_without_an_accelerator_is_said_once_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert session.main(Small, ["--cuda", "--repeat", "1", "--report", str(tmp_path / "r.json")]) == 0
    assert capsys.readouterr().err.count("No accelerator was found: it ran on the CPU.") == 1
    assert "no_accelerator" in {finding["rule"] for finding in read(tmp_path / "r.json")["findings"]}


def test_a_loss_that_is_not_finite_fails(tmp_path: Path) -> None:
    class Exploding(Small):
        def step(self, run: Run, batch: Any) -> torch.Tensor:
            return torch.tensor(float("inf"))

    assert session.main(Exploding, ["--report", str(tmp_path / "r.json")]) == 1
    record = read(tmp_path / "r.json")
    assert (record["outcome"], record["completed"]) == ("nan", False)
    assert record["message"] == "18 of 18 losses were not finite."
    assert record["batch_loss"] == [None] * 18


def test_no_loss_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Lossless(Small):
        def step(self, run: Run, batch: Any) -> None:
            return None

    assert session.main(Lossless, ["--report", str(tmp_path / "r.json")]) == 0
    record = read(tmp_path / "r.json")
    assert (record["losses_checked"], record["batch_loss"]) == (0, [])
    assert "no_loss" in {finding["rule"] for finding in record["findings"]}
    assert "Batch Loss     none\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "error, outcome, status, sentence",
    [
        (UnsupportedError("No.", "Use another."), "unsupported", 1, "No. Use another."),
        (MissingDataError("There is no set."), "missing_data", 1, "There is no set."),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
            "out_of_memory",
            1,
            "The host gave it no more memory. Try half the batch: --batch-size 2",
        ),
    ],
)
def test_a_failure_is_recorded_too(
    error: Exception, outcome: str, status: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Failing(Small):
        def step(self, run: Run, batch: Any) -> torch.Tensor | None:
            raise error

    assert session.main(Failing, ["--report", str(tmp_path)]) == status
    (path,) = tmp_path.glob("*.FAIL.*.json")
    record = read(path)
    assert (record["outcome"], record["message"]) == (outcome, sentence)
    assert record["batch_size"] == 4
    shown = capsys.readouterr().err
    assert f"Failing: {sentence}\n" in shown
    assert "Traceback" not in shown


def test_an_unforeseen_error_shows_where(capsys: pytest.CaptureFixture[str]) -> None:
    class Failing(Small):
        def build(self, run: Run) -> None:
            raise ZeroDivisionError("by zero")

    assert session.main(Failing, []) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert shown.endswith("Failing: ZeroDivisionError: by zero\n")


@pytest.mark.parametrize("argv", [["--nmuber", "3"], ["--batch-size", "0"], ["--fp16", "--half"]])
def test_wrong_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert session.main(Small, argv) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("Small: ")
    assert "Traceback" not in shown.err
    assert shown.out == ""


def test_an_explicit_precision_wins_over_its_aliases(tmp_path: Path) -> None:
    words = [
        "--half",
        "--opt-level",
        "O1",
        "--precision",
        "bf16",
        "--repeat",
        "1",
        "--report",
        str(tmp_path / "r.json"),
    ]
    assert session.main(Small, words) == 0
    assert read(tmp_path / "r.json")["precision"] == "bf16"


def test_main_leaves_with_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    for argv, status in ((["--repeat", "1"], 0), (["--nmuber"], 2)):
        with pytest.raises(SystemExit) as caught:
            Small.main(argv)
        assert caught.value.code == status
