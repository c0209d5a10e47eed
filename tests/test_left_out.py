"""Rooms that can be left out: suites and reports work without them, and their commands name the missing room."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from commands.calling import write
from cotenant.commands import COMMANDS
from patience import HANG_S
from report.making import launch
from tenants.suites import ROOT, job

LEFT_OUT = ("fleet",)
SUITE = ["--jobs", "sums.json", "--isolation", "none", "--users", "2", "--baseline", "none"]
CALLS = """
import json, sys
from cotenant.cli import main
for words in json.loads(sys.argv[1]):
    print("@@", main(words), flush=True)
"""


def linked(folder: Path) -> Path:
    """Make a package of links to all rooms but these; return the folder from which it is imported."""
    package = folder / "common" / "cotenant"
    package.mkdir(parents=True)
    for path in (ROOT / "common" / "cotenant").iterdir():
        if path.name not in LEFT_OUT:
            (package / path.name).symlink_to(path)
    return package.parent


def place(folder: Path) -> dict[str, str]:
    """Write records and a job file into a folder; return an environment in which commands find them."""
    write(folder / "records", launch("vae"))
    (folder / "sums.json").write_text(json.dumps([job("sums.py", "--repeat", 8, name="sums")]))
    ours = {"BASE": str(folder / "base"), "COTENANT_LOCK": str(folder / "lock"), "NO_COLOR": "1"}
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "OUTPUT_DIRECTORY")} | ours


def test_suites_and_reports_work_without_the_optional_parts(tmp_path: Path) -> None:
    environ = place(tmp_path)
    need = {
        "fleet": [["fleet", "run", "--jobs", "sums.json"], [*SUITE, "--launcher", "ray", "--nnodes", "2"]],
    }
    reading = [["report", "records"], ["export", "records", "--out", "rows.csv"], ["completion", "bash"]]
    work = [[*SUITE, "--dry"], *reading]
    words = [*work, *(line for lines in need.values() for line in lines)]
    ended = subprocess.run(
        [sys.executable, "-c", CALLS, json.dumps(words)],
        cwd=tmp_path,
        env=environ | {"PYTHONPATH": str(linked(tmp_path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANG_S,
    )
    *said, rest = ended.stdout.split("@@ ")
    assert len(said) == len(words), rest
    # Each part begins with the status of the command before it.
    statuses = [int(part.split("\n")[0]) for part in (*said[1:], rest)]
    assert statuses == [0] * len(work) + [2] * (len(words) - len(work)), ended.stdout
    assert "sums: 2 users" in said[0]
    assert "vae" in said[1]
    assert all(command in said[3] for command in COMMANDS)
    for room, lines in need.items():
        for line in lines:
            sentence = said[words.index(line)].partition("\n")[2]
            assert f"cotenant/{room}, which this installation leaves out. " in sentence, sentence
            assert f"git checkout common/cotenant/{room}" in sentence


@pytest.mark.slow
def test_a_suite_is_launched_without_them(tmp_path: Path) -> None:
    """It is launched from a copy, which tenants and the reaper import too."""
    environ, copy = place(tmp_path), tmp_path / "checkout"
    rooms = [f"cotenant/{room}" for room in LEFT_OUT]
    shutil.copytree(ROOT / "common", copy / "common", ignore=shutil.ignore_patterns("__pycache__", *LEFT_OUT))
    assert not any((copy / "common" / room).exists() for room in rooms)
    for name in ("tasks", "profiles", "targets", "baselines.json", "pyproject.toml"):
        (copy / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "run.py", copy)
    task = ["--jobs", "cpu", "--name", "toy_reg", *SUITE[2:], "--", "--repeat", "6"]
    for words in (SUITE, task, ["report", "base/output"]):
        line = [sys.executable, str(copy / "run.py"), *words]
        ended = subprocess.run(line, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=HANG_S)
        assert ended.returncode == 0, (words, ended.stdout, ended.stderr)
    assert "sums" in ended.stdout
    assert "toy_reg" in ended.stdout
