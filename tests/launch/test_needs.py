"""What the jobs of a suite lack here, and what their loaders may hold: known before anything is started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cotenant.commands.run import options_of, suite_parser
from cotenant.findings.facts import JobNeeds
from cotenant.isolation.choose import Chosen
from cotenant.isolation.unenforced import NoIsolation
from cotenant.launch.command import number_behind
from cotenant.launch.needs import IMAGE_BYTES, loader_bytes, needs_of
from cotenant.launch.start import Start
from machine.invented import machine
from tenants.suites import script


def asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *jobs: dict[str, Any]
) -> tuple[tuple[JobNeeds, ...], tuple[Start, ...]]:
    """What these jobs need, of which the commands stand in `folder`, for two tenants."""
    monkeypatch.setenv("BASE", str(folder / "base"))
    monkeypatch.delenv("DATA_DIRECTORY", raising=False)
    monkeypatch.delenv("OUTPUT_DIRECTORY", raising=False)
    path = folder / "jobs.json"
    path.write_text(json.dumps(list(jobs)))
    given = suite_parser("", "", "").parse_words(["--jobs", str(path), "--users", "2"])
    there = machine(cores=4)
    return needs_of(options_of(given, (), there), there, Chosen(NoIsolation()))


def job(name: str, **args: Any) -> dict[str, Any]:
    flags = {f"--{key.replace('_', '-')}": value for key, value in args.items()}
    return {"name": name, "cmd": f"{name}/pytorch/run.sh", "args": flags, "cgroup": "student"}


def test_a_job_that_cannot_be_started_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "good/pytorch/run.sh")
    (bad, good), starts = asked(tmp_path, monkeypatch, job("bad"), job("good"))
    assert bad.refusal is not None
    assert (bad.refusal.rule, bad.refusal.severity) == ("job_not_startable", "error")
    assert "bad/pytorch/run.sh" in bad.refusal.sentence
    assert good == JobNeeds("good")
    assert [start.cell.job.name for start in starts] == ["good"]


def test_input_that_is_there_or_will_be_made_or_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "base/data"
    (data / "there").mkdir(parents=True)
    for name in ("reads", "makes"):
        script(tmp_path / f"{name}/pytorch/run.sh")
    script(tmp_path / "makes/download_dataset.sh")
    here = {"data": ["$DATA_DIRECTORY/there", "$DATA_DIRECTORY/gone"], "report": "$OUTPUT_DIRECTORY"}
    needs, _ = asked(tmp_path, monkeypatch, job("reads", **here), job("makes", **here), job("reads", number=3))
    assert needs == (
        JobNeeds("reads", missing=(data / "gone",), reads=2),
        JobNeeds("makes", missing=(data / "gone",), reads=2, made=True),
        JobNeeds("reads"),
    )


def test_packages_are_those_of_the_program_beside_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = script(tmp_path / "odd/pytorch/run.sh")
    command.with_name("main.py").write_text("import no_such_package")
    (odd,), _ = asked(tmp_path, monkeypatch, job("odd"))
    assert odd.packages == ("no_such_package",)


def test_loaders_of_all_tenants_of_the_hungriest_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("eyes", "import torch\nfrom torchvision import io"), ("words", "import torch")):
        script(tmp_path / f"{name}/pytorch/run.sh").with_name("main.py").write_text(text)
    hungry = {"workers": [1, 3], "batch_size": 10}
    _, starts = asked(tmp_path, monkeypatch, job("eyes", **hungry), job("words", workers=100, batch_size=100))
    assert loader_bytes(starts) == 2 * 3 * 2 * 10 * IMAGE_BYTES
    _, starts = asked(tmp_path, monkeypatch, job("eyes", workers=0, batch_size=10), job("eyes", batch_size=10))
    assert loader_bytes(starts) == loader_bytes([]) == 0


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (["x", "--workers", "8"], 8),
        (["x", "--workers=8"], 8),
        (["x", "--workers", "2", "-j", "3"], 3),
        (["x", "-j", "3", "--workers=8"], 8),
        (["x", "--workers"], 0),
        (["x", "--workers=", "8"], 0),
        (["x", "8"], 0),
    ],
)
def test_the_number_that_a_command_asks_for(words: list[str], number: int) -> None:
    assert number_behind(words, "--workers", "-j") == number
