from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cotenant.machine import facts as subject
from cotenant.machine.facts import git_state, software
from machine.fakehost import write

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def test_software_of_this_host_and_others(tmp_path: Path) -> None:
    installed = software()
    assert installed["kernel"] == os.uname().release
    assert installed["python"] == sys.version.split()[0]
    assert {"torch", "numpy"} <= set(installed["packages"]) <= {"torch", "torchvision", "numpy", "cotenant"}
    assert all(installed["packages"].values())
    assert software(tmp_path)["distribution"] == ""
    write(tmp_path, {"usr/lib/os-release": "NAME=x\nPRETTY_NAME='Other 1'"})
    assert software(tmp_path)["distribution"] == "Other 1"
    write(tmp_path, {"etc/os-release": 'NAME=Debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"'})
    assert software(tmp_path)["distribution"] == "Debian GNU/Linux 12 (bookworm)"


def git(directory: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        ["git", *identity, *words], cwd=directory, env=environ, capture_output=True, text=True, check=True
    ).stdout.strip()


@needs_git
def test_git_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert git_state(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert git_state(tmp_path) is None
    write(tmp_path, {"file": 1})
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-q", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert git_state(tmp_path) == {"commit": commit, "dirty": False}
    write(tmp_path, {"new": 1})
    assert git_state(tmp_path) == {"commit": commit, "dirty": False}
    write(tmp_path, {"file": 22})
    assert git_state(tmp_path) == {"commit": commit, "dirty": True}


def test_no_git_no_directory_no_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert git_state(tmp_path / "missing") is None
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nexec sleep 5\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(subject, "_GIT_SECONDS", 0.05)
    assert git_state(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert git_state(tmp_path) is None
