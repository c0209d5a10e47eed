"""A run from Python: the words of the command, its lines, its records, and its end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cotenant
from api.sample import repeated
from commands.calling import refusal, write
from cotenant.api import running
from cotenant.isolation.lock import SuiteLock
from patience import HANG_S
from tenants.suites import ROOT, job

STAND_IN = """
import json, os, shutil, sys
json.dump(sys.argv[1:], open("words", "w"))
print("1/1 vae clean", file=sys.stderr)
for path in os.listdir("made"):
    shutil.copy(f"made/{path}", "output")
for sentence in eval(os.environ.get("SAYS", "[]")):
    print(f"cotenant: {sentence}", file=sys.stderr)
if "SAYS" in os.environ and os.environ["STATUS"] in "013":
    print("As a page, with pictures: ...", file=sys.stderr)
sys.exit(int(os.environ.get("STATUS", 0)))
"""
"""A runner that writes down its words, copies records, and prints and returns as its environment says."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which a stand-in takes the runner's place, with a record of another run in its output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "_program", lambda: [sys.executable, "-S", "-c", STAND_IN])
    write(tmp_path / "output", repeated("wlm", 500))
    write(tmp_path / "made", repeated("vae", 500, 450))
    return tmp_path


def test_run_passes_flags_and_returns_only_new_records(place: Path) -> None:
    told: list[str] = []
    result = cotenant.run(
        "cpu",
        name=["vae", "w*"],
        users=2,
        pressure="dram",
        budget_s=1.5,
        uid=0,
        outdir="output",
        arguments=["--lr", 0.1],
        flags=["--reserve=2G"],
        tell=told.append,
    )
    assert json.loads(Path("words").read_text()) == [
        *("run", "--json", "--jobs=cpu", "--name=vae,w*", "--users=2", "--budget=1.5", "--uid=0", "--outdir=output"),
        *("--pressure=dram", "--reserve=2G", "--", "--lr", "0.1"),
    ]
    assert told == ["1/1 vae clean"]
    assert [job.name for job in result.jobs] == ["vae"]
    assert result.kept is not None
    assert result.kept.value == pytest.approx(0.9, rel=1e-3)


@pytest.mark.parametrize("status", [0, 1, 3])
def test_a_failed_job_raises_nothing_and_warnings_are_told(
    status: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATUS", str(status))
    monkeypatch.setenv("SAYS", "['A table is missing.']")
    told: list[str] = []
    assert cotenant.run(outdir="output", tell=told.append).jobs
    assert told == ["1/1 vae clean", "As a page, with pictures: ...", "A table is missing."]


@pytest.mark.parametrize(
    ("status", "kind"), [(2, cotenant.CotenantError), (4, cotenant.IsolationError), (130, cotenant.CotenantError)]
)
def test_a_refusal_is_the_commands_sentence(
    status: int, kind: type[Exception], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATUS", str(status))
    monkeypatch.setenv("SAYS", "['One.', 'Another one.']")
    with pytest.raises(kind) as refused:
        cotenant.run(outdir="output")
    assert type(refused.value) is kind
    assert str(refused.value) == "One. Another one."


def test_a_suite_whose_end_could_not_be_written_is_an_error(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = "import sys; sys.exit('cotenant: The disk is full.')"
    monkeypatch.setattr(running, "_program", lambda: [sys.executable, "-S", "-c", full])
    assert refusal(cotenant.run, outdir="output") == "The disk is full."


def test_a_run_without_records_is_an_error(place: Path) -> None:
    shutil.rmtree("made")
    Path("made").mkdir()
    told = refusal(cotenant.run, outdir="output", flags=["--dry"])
    assert told == "The run wrote no record. Its last line: 1/1 vae clean"


def test_whoever_cannot_take_a_line_ends_the_run_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner is interrupted and awaited, as after Ctrl-C."""
    waits = "import signal, sys\ntry:\n    print('begun', file=sys.stderr, flush=True)\n    signal.pause()\n"
    waits += "except KeyboardInterrupt:\n    open('interrupted', 'w').close()"
    monkeypatch.setattr(running, "_program", lambda: [sys.executable, "-S", "-c", waits])

    def interrupted(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cotenant.run(outdir="output", tell=interrupted)
    assert Path("interrupted").exists()


REAL = """
import cotenant
result = cotenant.run("sums.json", users=2, isolation="none", outdir="output")
print(result.verdict, [job.name for job in result.jobs], result.jobs[0].rate_items_s > 0)
try:
    cotenant.run("none.json")
except cotenant.CotenantError as error:
    print(error)
"""


def typed(folder: Path, code: str) -> subprocess.Popen[str]:
    """Start a program that imports the package of this checkout."""
    environ = os.environ | {"COTENANT_LOCK": str(folder / "lock"), "PYTHONPATH": str(ROOT / "common")}
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_a_real_run(tmp_path: Path) -> None:
    (tmp_path / "sums.json").write_text(json.dumps([job("sums.py", "--repeat", 8, name="sums")]))
    said, errors = typed(tmp_path, REAL).communicate(timeout=HANG_S)
    assert errors == ""
    assert "1/1 sums" in said
    *_, result, refusal = said.splitlines()
    assert "['sums'] True" in result
    assert refusal.startswith("--jobs: 'none.json' is neither a file nor a profile.")


@pytest.mark.slow
def test_an_interrupted_program_leaves_no_runner(tmp_path: Path) -> None:
    (tmp_path / "sums.json").write_text(json.dumps([job("sums.py", "--repeat", 100_000, name="sums")]))
    program = typed(tmp_path, REAL)
    deadline_s = time.monotonic() + HANG_S
    while not [*tmp_path.glob("output/logs/*")] and time.monotonic() < deadline_s:
        time.sleep(0.1)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=HANG_S)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    (record, *_) = (tmp_path / "output").glob("*.json")
    assert json.loads(record.read_text())["outcome"] == "interrupted"
    with SuiteLock(tmp_path / "lock"):
        pass  # The lock is free again.
