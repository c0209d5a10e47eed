"""The whole answer to each wrong usage: read the golden files before you keep a change of them.

Each answer names the mistake and its remedy so clearly that one reading is enough. The files hold the command lines as
well: add one, and `GOLDEN=write` adds its answer.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from commands.calling import Capture, call, write
from cotenant.isolation.lock import SuiteLock
from golden import check_golden
from report.making import launch

GOLDEN = Path(__file__).with_name("golden")
PROMPT = "$ ./run.sh "


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place with an empty directory, a broken job file, another file, and two directories of records."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BASE", str(tmp_path / "workspace"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "there.json").write_text("{}")
    (tmp_path / "bad.json").write_text('[{"name": "vae", "comand": "./run.sh"}]')
    for place in ("A", "B"):
        write(tmp_path / place, launch("vae"))
    return tmp_path


def check_answers(path: Path, place: Path, capsys: Capture) -> None:
    """Call each command line of a golden file while another suite runs: none waits for that suite or leaves a file."""
    parts = []
    with SuiteLock(place / "lock"):
        for line in path.read_text().splitlines():
            if line.startswith(PROMPT):
                status, printed, errors = call(capsys, *shlex.split(line.removeprefix(PROMPT)))
                assert (status, printed) == (2, ""), line
                parts.append(f"{line}\n{errors}".replace(f"{place}/", "").replace(str(place), "HERE"))
    assert len(parts) > 4
    assert not (place / "workspace").exists()
    check_golden(path, "".join(parts))


def test_wrong_usages_are_answered_right_at_first_reading(here: Path, capsys: Capture) -> None:
    check_answers(GOLDEN / "wrong-usages.txt", here, capsys)
