"""A benchmark from outside the tree: written, tested, launched in slices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from commands.calling import Capture, call, check_refusals
from tenants.suites import Suites


@pytest.mark.slow
@pytest.mark.v1
def test_the_skeleton_trains_passes_its_test_and_is_launched_in_slices(v1: Suites, capsys: Capture) -> None:
    folder = v1.folder / "elsewhere"
    status, printed, _ = call(capsys, "new", "my_field/small_net", "--into", folder)
    assert status == 0
    assert printed.splitlines()[-1].endswith(f"--jobs {folder / 'small_net.json'}")
    main = folder / "my_field/small_net/pytorch/main.py"
    assert len(main.read_text().splitlines()) <= 40
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(main.with_name("test_main.py"))]
    tested = subprocess.run(line, capture_output=True, text=True, cwd=folder)
    assert tested.returncode == 0, tested.stdout
    suite = json.loads((folder / "small_net.json").read_text())
    suite[0]["cmd"] = str(main.with_name("run.sh"))
    ended = v1.run(suite, "--users", 2, "--strict", "--", "--repeat", 8)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert [(record["outcome"], record["isolation"]["backend"]) for record in v1.records()] == [("completed", "v1")] * 2


def test_names_that_are_none_and_files_that_are_there(tmp_path: Path, capsys: Capture) -> None:
    assert call(capsys, "new", "a/b", "--into", tmp_path)[0] == 0
    sentences = {
        "a/b": "is there already.",
        "ab": "'ab' is no name of a benchmark.",
        "a/../b": "is no name",
        "a/B": "in small letters",
    }
    check_refusals(capsys, "new", sentences, "--into", tmp_path)
