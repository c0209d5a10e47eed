"""A token in a job file: no file of its suite holds it, and no command shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotenant.cli import main
from tenants.suites import SUMS, Suites, job, script

SECRET = "s3cret-of-somebody"


def with_token(folder: Path) -> list[dict[str, object]]:
    """A job with a token among its arguments and its variables; its program looks at neither."""
    script(folder / "run.sh", f"{SUMS} --repeat 6 --number 2")
    return [job(name="job", args={"--api-key": SECRET}, env={"HF_TOKEN": SECRET}) | {"cmd": str(folder / "run.sh")}]


def test_no_preview_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps(with_token(tmp_path)))
    for more in ([], ["--verbose"], ["--format", "json"]):
        words = ["run", "--jobs", path, "--users", 2, "--dry", "--outdir", tmp_path / "out", *more]
        main(list(map(str, words)))
        said = "".join(capsys.readouterr())
        assert "--api-key" in said, said
        assert SECRET not in said


@pytest.mark.slow
def test_no_file_of_a_suite_holds_it(loose: Suites) -> None:
    ended = loose.run(with_token(loose.folder), "--users", 2, "--", "--password", SECRET)
    files = [path for path in loose.output.rglob("*") if path.is_file()]
    assert any(path.suffix == ".resolved" for path in files)
    assert [record["outcome"] for record in loose.records()] == ["completed"] * 2, ended.stderr
    # The program's own log is its own.
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert SECRET not in ended.stdout + ended.stderr
    values = {word for record in loose.records() for word in record["command"] if word.startswith("hidden:")}
    assert len(values) == 1
